import { globSync } from 'node:fs'

export interface Section {
  readonly title: string
  /** Paths from the root of the repository, in the order of the menu. */
  readonly pages: readonly string[]
  /** Pages in groups below the others. */
  readonly groups?: readonly { readonly title: string; readonly pages: readonly string[] }[]
}

const allOf = (pattern: string): string[] => globSync(pattern).sort()

/** The generated pages of modules, by their folder in docs/reference. */
const referenceGroups = {
  kinds: 'Kinds of objects',
  filters: 'Filters',
  'auth-mechanisms': 'Authentication mechanisms',
  authorizations: 'Authorizations',
  'workflow-tasks': 'Workflow tasks',
  'custom-tasks': 'Custom tasks',
  'dynamic-workflows': 'Dynamic workflows',
  targets: 'Targets',
  'directory-inserts': 'Directory inserts',
  mappers: 'Mappers',
  'value-sources': 'Value sources',
  jobs: 'Jobs',
  notifiers: 'Notifiers',
  'audit-sinks': 'Audit sinks',
}

/**
 * The menu of the documentation site, and the list of its pages. Titles are the first headings of the pages. A page under
 * docs/ that is not listed fails test/docs-site.test.ts.
 */
export const sections: readonly Section[] = [
  {
    title: 'Start',
    pages: [
      'docs/README.md',
      'docs/guides/first-five-minutes.md',
      'docs/guides/with-curl.md',
      'docs/how-do-i.md',
      'docs/guides/getting-started.md',
      'docs/start/identity-administrator.md',
      'docs/start/platform-engineer.md',
      'docs/start/application-developer.md',
      'docs/start/auditor.md',
    ],
  },
  {
    title: 'Guides',
    pages: [],
    groups: [
      {
        title: 'SCIM',
        pages: [
          'docs/guides/scim-gateway.md',
          'docs/guides/entra-id.md',
          'docs/guides/okta.md',
          'docs/guides/sailpoint.md',
          'docs/guides/scim-clients.md',
          'docs/guides/resource-types.md',
          'docs/guides/scim-journal-and-events.md',
        ],
      },
      {
        title: 'Logins',
        pages: [
          'docs/guides/authenticating-callers.md',
          'docs/guides/logging-in.md',
          'docs/guides/own-issuer.md',
          'docs/guides/dashboards.md',
          'docs/guides/second-factors.md',
          'docs/guides/passwords.md',
        ],
      },
      {
        title: 'Portal and workflows',
        pages: [
          'docs/guides/portal.md',
          'docs/guides/console.md',
          'docs/guides/approvals.md',
          'docs/guides/registration.md',
          'docs/guides/call-workflow.md',
          'docs/guides/notifications.md',
          'docs/guides/mail.md',
          'docs/guides/reports.md',
          'docs/guides/jobs.md',
          'docs/guides/kubernetes-tasks.md',
        ],
      },
      {
        title: 'Targets and APIs',
        pages: [
          'docs/guides/directory.md',
          'docs/guides/reconciliation.md',
          'docs/guides/push.md',
          'docs/guides/webhook-target.md',
          'docs/guides/writing-a-target.md',
          'docs/guides/writing-a-plugin.md',
          'docs/guides/portal-api.md',
          'docs/guides/api-documentation.md',
        ],
      },
      {
        title: 'Token service',
        pages: [
          'docs/guides/token-service.md',
          'docs/guides/injector-webhook.md',
          'docs/guides/injected-settings.md',
          'docs/guides/token-issuers.md',
          'docs/guides/token-grants.md',
          'docs/guides/sts-keys.md',
          'docs/guides/aws.md',
          'docs/guides/azure.md',
          'docs/guides/gcp.md',
          'docs/guides/openbao.md',
          'docs/guides/spiffe.md',
          'docs/guides/another-cluster.md',
        ],
      },
      { title: 'Examples', pages: allOf('examples/*/README.md') },
    ],
  },
  {
    title: 'Concepts',
    pages: [
      'docs/concepts/requests.md',
      'docs/concepts/identities.md',
      'docs/workflows.md',
      'docs/concepts/workload-tokens.md',
      'docs/concepts/protocol-flows.md',
      'docs/configuration.md',
      'docs/architecture.md',
    ],
  },
  {
    title: 'Reference',
    pages: [
      'docs/reference/README.md',
      'docs/reference/command-line.md',
      'docs/reference/errors.md',
      'docs/reference/limits.md',
      'docs/reference/metrics.md',
      'docs/reference/report-views.md',
      'docs/reference/sdk.md',
      'docs/specification.md',
    ],
    groups: Object.entries(referenceGroups).map(([folder, title]) => ({
      title,
      pages: allOf(`docs/reference/${folder}/*.md`),
    })),
  },
  {
    title: 'Operations',
    pages: [
      'docs/guides/installing.md',
      'docs/guides/deploying.md',
      'docs/guides/chart-comparison.md',
      'docs/guides/scaling.md',
      'docs/capacity.md',
      'docs/benchmarks.md',
      'docs/guides/gitops.md',
      'docs/guides/observability.md',
      'docs/guides/backup-and-restore.md',
      'docs/guides/upgrading.md',
      'docs/guides/kubernetes-configuration.md',
      'docs/storage.md',
      'CHANGELOG.md',
    ],
  },
  {
    title: 'Security',
    pages: ['docs/guides/hardening.md', 'docs/guides/audit.md', 'SECURITY.md'],
  },
  {
    title: 'Migration',
    pages: ['docs/migration-from-openunison.md', 'docs/openunison.md', 'docs/guides/legacy-scripts.md'],
  },
  {
    title: 'Decisions',
    pages: [...allOf('docs/decisions/*.md'), 'CONTRIBUTING.md'],
  },
]

/** Every page, in the order of the menu. */
export const allPages: readonly string[] = sections.flatMap(({ pages, groups = [] }) => [
  ...pages,
  ...groups.flatMap((group) => group.pages),
])

/** The address of a page in the site: docs/guides/mail.md is guides/mail.html. */
export const addressOf = (page: string): string =>
  page
    .replace(/^docs\//, '')
    .replace(/README\.md$/, 'index.md')
    .replace(/\.md$/, '.html')
