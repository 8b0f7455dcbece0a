import type { PortalAccess, PortalMemory, PortalOrg, PortalWorkflow } from '#sdk/filter/portal.ts'
import type { Configuration } from '#sdk/module/configuration.ts'
import type { DynamicWorkflowSource } from '#sdk/workflow/dynamic-workflow.ts'

type Shown = Pick<Configuration, 'orgs' | 'portalUrls' | 'reports' | 'workflows'>

/** What the configuration has for a portal. The sources of dynamic workflows, by workflow, may come later. */
export function createPortal(
  { orgs, portalUrls, reports, workflows }: Shown,
  sources: ReadonlyMap<string, DynamicWorkflowSource>,
  memory: PortalMemory,
): PortalAccess {
  return {
    memory,
    orgs: fromTheTop(
      Array.from(orgs.values(), ({ name, spec, rules }) => ({
        id: spec.uuid,
        name: spec.label ?? name,
        description: spec.description ?? '',
        parent: spec.parent === '' ? undefined : spec.parent,
        showInPortal: spec.showInPortal ?? true,
        showInRequest: spec.showInRequestAccess ?? true,
        showInReports: spec.showInReports ?? true,
        rules,
      })),
    ),
    urls: Array.from(portalUrls.values(), ({ name, spec, rules }) => ({
      name,
      label: spec.label,
      url: spec.url,
      org: spec.org === '' ? undefined : spec.org,
      icon: spec.icon?.replaceAll(/\s/g, '') || undefined,
      rules,
    })),
    reports: Array.from(reports.values(), ({ spec }) => ({
      name: spec.name,
      org: spec.orgId === '' ? undefined : spec.orgId,
      spec,
    })),
    workflows: Array.from(workflows.values(), (workflow): PortalWorkflow => {
      const { name, label, description, orgId, inList, accessEnds, dynamic } = workflow
      return {
        name,
        label,
        description,
        org: orgId,
        inList,
        accessEnds,
        dynamic: dynamic && {
          annotations: dynamic.annotations,
          parameterSets: async (subject) => {
            const source = sources.get(name)
            if (source === undefined) throw new Error(`the dynamic workflow "${name}" is not ready yet`)
            return await source.parameterSets(subject)
          },
        },
      }
    }),
  }
}

/** The check of the configuration has made sure that every parent is there, and that nobody is their own. */
function fromTheTop(orgs: readonly PortalOrg[]): PortalOrg[] {
  const sorted: PortalOrg[] = []
  let level: readonly (string | undefined)[] = [undefined]
  while (level.length > 0) {
    const next = orgs.filter(({ parent }) => level.includes(parent))
    sorted.push(...next)
    level = next.map(({ id }) => id)
  }
  return sorted
}
