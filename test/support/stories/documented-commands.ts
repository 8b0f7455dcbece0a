import { globSync, readFileSync } from 'node:fs'

/** The commands of a page, which test/stories/documented-commands.test.ts runs in order. */
export interface Walk {
  readonly page: string
  /** The numbers of its shell blocks, from 0; all of them if absent. */
  readonly blocks?: readonly number[]
  /** Commands that the page expects to have been run: those of another page, or what its prose says. */
  readonly first?: string
  /** Commands before a block: a value that its reader would copy from the output. */
  readonly before?: Readonly<Record<number, string>>
  /** Parts of what the commands print. */
  readonly prints: readonly string[]
}

export const shellBlocksOf = (page: string): string[] => blocksOf(page, 'sh', 'shell', 'bash', 'console')
const serve = (example: string, folder = example): string =>
  `bin/gatehouse serve --config examples/${example} --data .gatehouse/${folder}`
const quickstart = 'bin/gatehouse serve --config examples/quickstart --data .gatehouse'
const certificate =
  'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=idm -days 30 -keyout key.pem -out cert.pem'
const scimInit = { first: certificate, prints: ['https://idm.example.com/scim/'] }

export const walks: readonly Walk[] = [
  {
    page: 'docs/reference/auth-mechanisms/auth.ScimToken.md',
    first: quickstart,
    prints: ['ghs_', 'okta default valid, never used'],
  },
  {
    page: 'docs/guides/with-curl.md',
    blocks: [1],
    first: quickstart,
    prints: ['"userName":"mary"', '204', 'allowed'],
  },
  {
    page: 'docs/guides/first-five-minutes.md',
    blocks: [1, 2],
    first: quickstart,
    prints: ['"userName":"annie"', '"displayName":"Annie Easley"'],
  },
  { page: 'docs/concepts/requests.md', prints: ['allowed'] },
  { page: 'docs/configuration.md', prints: [] },
  {
    page: 'docs/guides/portal-api.md',
    before: {
      3: 'until APPROVAL=$(curl -H "Authorization: Bearer $GRACE" $PORTAL/approvals | field approval); [ -n "$APPROVAL" ]; do sleep 0.2; done',
      5: 'until ID=$(curl -H "Authorization: Bearer $ADA" $PORTAL/access | field id); [ -n "$ID" ]; do sleep 0.2; done',
    },
    prints: ['{"first-request":"success"}', '"openapi":"3.1'],
  },
  { page: 'docs/guides/reports.md', first: serve('portal-api'), prints: ['Completed Approvals'] },
  {
    page: 'docs/guides/approvals.md',
    prints: ['"status":"waiting"', 'vault-access'],
  },
  { page: 'docs/guides/portal.md', blocks: [0], prints: [] },
  {
    page: 'docs/guides/logging-in.md',
    blocks: [0],
    first: shellBlocksOf('examples/login/README.md').join('\n'),
    prints: ['ada', 'minsLeft'],
  },
  { page: 'docs/guides/own-issuer.md', blocks: [0, 1, 4], prints: ['"token_endpoint"', '"status":"completed"'] },
  { page: 'docs/guides/call-workflow.md', blocks: [0, 1, 2, 3, 4, 6], prints: ['"status":"completed"', 'jjackson'] },
  { page: 'docs/guides/entra-id.md', ...scimInit },
  { page: 'docs/guides/okta.md', ...scimInit },
  { page: 'docs/guides/sailpoint.md', ...scimInit },
  { page: 'docs/guides/scim-clients.md', ...scimInit },
  { page: 'docs/guides/authenticating-callers.md', prints: ['eyJ'] },
  {
    page: 'docs/guides/scim-gateway.md',
    first: `mkdir config\nblock docs/guides/scim-gateway.md yaml 0 > config/gateway.yaml\necho 'OU_HOST: gateway.example.com' > config/values.yaml`,
    prints: ['"totalResults":0'],
  },
  { page: 'docs/guides/token-service.md', prints: ['0 failed'] },
  { page: 'examples/token-service/README.md', blocks: [4], prints: ['0 failed'] },
  {
    page: 'docs/guides/audit.md',
    blocks: [1],
    first: `${quickstart}\nstop`,
    prints: ['all match the database', 'all unchanged'],
  },
  { page: 'examples/legacy-target/README.md', prints: [] },
  { page: 'examples/second-factors/README.md', prints: [] },
  { page: 'examples/scim/README.md', prints: ['"userName":"ann"', 'scim-entra'] },
  { page: 'examples/scim-target/README.md', prints: ['"userName":"ann"'] },
  {
    page: 'examples/push/README.md',
    before: {
      3: `until curl -H "Authorization: Bearer $(cat .gatehouse/secrets/chat/token)" http://127.0.0.1:8080/scim/v2/Users | grep -q '"userName":"ann"'; do sleep 0.2; done`,
    },
    prints: ['"displayName":"Ann Lee"', '1 agree'],
  },
  { page: 'examples/resource-types/README.md', prints: ['"serialNumber":"C02XL0AAJGH5"', '"endpoint":"/Roles"'] },
  { page: 'examples/sql-target/README.md', prints: ['"userName":"grace"', 'grace@example.com'] },
  { page: 'examples/webhook-target/README.md', prints: ['"userName":"grace"', 'grace@example.com'] },
  { page: 'examples/ldap-target/README.md', prints: ['"userName":"grace"', 'uid: grace'] },
]

/** Shell blocks that no walk runs, by page and number, and why. */
export const notRun: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  'README.md': {
    0: 'installs and tests the whole checkout, as CI does',
    1: 'installs the published package; test/release installs the one of this commit',
  },
  'docs/guides/with-curl.md': { 0: 'installs the checkout; the walk starts the same configuration' },
  'docs/guides/first-five-minutes.md': {
    0: 'installs the checkout; the walk starts the same configuration',
    3: 'waits for a token that the reader pastes from the portal',
    4: 'needs that token; test/stories/quickstart.test.ts sends the same call',
  },
  'docs/guides/api-documentation.md': {
    0: 'a fragment for any portal; test/stories/api-documents.test.ts reads both documents',
  },
  'docs/guides/portal.md': {
    1: 'builds the portal, as npm ci does before the tests',
  },
  'docs/guides/own-issuer.md': {
    2: 'needs a user in a browser; test/stories/own-issuer.test.ts has the device flow',
    3: 'the host is an example; test/stories/user-token-exchange.test.ts exchanges tokens',
  },
  'docs/guides/call-workflow.md': { 5: 'a fragment with three dots' },
  'docs/guides/registration.md': {
    0: 'the host is an example; test/stories/registration.test.ts sends these calls',
    1: 'DIR is a placeholder; test/stories/registration.test.ts has invitations',
    2: 'the host is an example; test/stories/registration.test.ts has invitations',
  },
  'docs/guides/logging-in.md': { 1: 'waits for a proxy; src/requests/listener has tests of its headers' },
  'docs/guides/second-factors.md': { 0: 'DIR is a placeholder; test/stories/second-factors.test.ts resets factors' },
  'docs/guides/hardening.md': {
    0: 'a secret key with three dots; test/production-checks.test.ts has the check',
    1: 'needs a cluster with a release; test/release runs it in the image',
  },
  'examples/production/README.md': { 0: 'needs db.example.com; test/production-checks.test.ts checks the folder' },
  'docs/benchmarks.md': {
    0: 'takes minutes of all cores; tests in bench/ cover the tools',
    1: 'installs and measures a commit, which takes minutes',
    2: 'takes minutes of all cores',
    3: 'downloads Keycloak, and takes minutes of all cores',
    4: 'takes half an hour',
  },
  'docs/capacity.md': { 0: 'takes minutes of all cores; tests in bench/ cover the tools' },
  'docs/guides/audit.md': {
    0: 'anchors.jsonl comes from a running system; test/stories/audit.test.ts compares anchors',
  },
  'docs/guides/gitops.md': {
    0: 'needs kubectl; test/kube/gitops.kube.test.ts builds the example as kubectl does',
    1: 'needs a cluster with Argo CD; test/argocd-health.test.ts runs the check',
  },
  'docs/guides/push.md': {
    0: 'the names are examples; test/stories/push.test.ts follows the page',
  },
  'docs/guides/reconciliation.md': {
    0: 'the names are examples; test/stories/reconciliation.test.ts plans, links and applies',
  },
  'docs/guides/backup-and-restore.md': {
    0: 'the folders are examples; test/stories/backup.test.ts backs up and restores',
    1: 'the folders are examples; test/stories/backup.test.ts backs up and restores',
    2: 'needs a cluster with nodes; test/release runs it in the image',
    3: 'test/stories/backup.test.ts runs it',
    4: 'the folders are examples; test/stories/backup.test.ts backs up and restores',
    5: 'test/stories/backup.test.ts runs it',
  },
  'docs/guides/token-grants.md': {
    0: 'needs kubectl; test/kube/token-grants.kube.test.ts creates such a grant',
    1: 'the files are examples; src/cli/commands/sts.test.ts explains with such a file',
  },
  'docs/guides/upgrading.md': {
    0: 'the folders are examples; src/cli/commands/export.conformance.test.ts exports and imports',
    1: 'the folders are examples; src/cli/commands/export.programs.test.ts pipes one into the other',
  },
  'docs/guides/observability.md': { 0: 'the collector is an example; test/stories/tracing.test.ts has one' },
  'docs/guides/getting-started.md': {
    0: 'asks questions; test/stories/init.test.ts runs it with flags',
    1: 'needs the folder that init makes; src/cli/commands/doctor.test.ts runs it',
  },
  'docs/guides/scaling.md': { 0: 'needs PostgreSQL; test/stories/workers.test.ts starts workers' },
  'docs/guides/deploying.md': {
    0: 'needs Docker and a registry',
    1: 'needs Docker',
    2: 'needs a cluster with nodes; test/kube installs the chart',
    3: 'needs kubectl; test/kube/helm-options.kube.test.ts applies what helm shows in the same way',
    4: 'needs a cluster with nodes; test/kube/helm-options.kube.test.ts installs and upgrades in this way',
    5: 'needs a cluster with nodes; test/kube installs the chart',
  },
  'docs/guides/kubernetes-configuration.md': {
    0: 'needs kubectl; test/kube applies the definitions',
    1: 'needs kubectl; test/kube applies such objects',
  },
  'docs/guides/injector-webhook.md': { 0: 'needs kubectl; test/kube creates the object' },
  'docs/guides/another-cluster.md': { 0: 'needs kubectl; test/kube/consumer-guides.kube.test.ts applies both files' },
  'docs/guides/aws.md': {
    0: 'needs an AWS account; test/kube/consumer-guides.kube.test.ts reads its values',
    1: 'needs an AWS account; test/kube/consumer-guides.kube.test.ts reads its values',
  },
  'docs/guides/azure.md': {
    0: 'needs an Azure account; test/kube/consumer-guides.kube.test.ts reads its values',
    1: 'needs an Azure account; test/kube/consumer-guides.kube.test.ts reads its values',
  },
  'docs/guides/gcp.md': {
    0: 'needs a Google Cloud account; test/kube/consumer-guides.kube.test.ts reads its values',
    1: 'needs a Google Cloud account; test/kube/consumer-guides.kube.test.ts reads its values',
    2: 'needs a Google Cloud account',
  },
  'docs/guides/openbao.md': {
    0: 'test/kube/consumer-guides.kube.test.ts sends these calls to a real server',
    1: 'test/kube/consumer-guides.kube.test.ts sends these calls to a real server',
  },
  'docs/guides/sts-keys.md': {
    0: 'needs an endpoint; test/how-do-i.test.ts rotates a key',
    1: 'needs OpenBao; test/kube has a real Transit',
  },
  'docs/storage.md': { 0: 'needs db.example.com; test/stories starts gateways on PostgreSQL' },
  'docs/guides/directory.md': { 0: 'asks for a password; test/stories/directory.test.ts adds users' },
  'examples/token-service/README.md': {
    0: 'needs a cluster; test/kube/example-token-service.kube.test.ts follows the page',
    1: 'needs kubectl; test/kube/example-token-service.kube.test.ts follows the page',
    2: 'needs a cluster; test/kube/example-token-service.kube.test.ts follows the page',
    3: 'needs a cluster; test/kube/example-token-service.kube.test.ts follows the page',
    5: 'needs a cluster; test/kube/example-token-service.kube.test.ts follows the page',
  },
}

/** Without the recipes, whose commands test/how-do-i.test.ts runs. */
export const pagesWithCommands = (): string[] =>
  ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...globSync('{docs,examples,deploy}/**/*.md')]
    .filter((page) => page !== 'docs/how-do-i.md')
    .sort()

/** The blocks of a page in these languages, without the indentation of the list that they are in. */
export function blocksOf(page: string, ...languages: readonly string[]): string[] {
  const fence = new RegExp(`^( *)\`\`\`(?:${languages.join('|')})\\n([\\s\\S]*?)^ *\`\`\`$`, 'gm')
  return Array.from(readFileSync(page, 'utf8').matchAll(fence), ([, indent = '', text = '']) =>
    text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )
}
