import { auditSinks } from '#catalog/audit-sinks.ts'
import { authMechanisms } from '#catalog/auth-mechanisms.ts'
import { authorizations } from '#catalog/authorizations.ts'
import { customTasks } from '#catalog/custom-tasks.ts'
import { directoryInserts } from '#catalog/directory-inserts.ts'
import { dynamicWorkflows } from '#catalog/dynamic-workflows.ts'
import { filters } from '#catalog/filters.ts'
import { jobs } from '#catalog/jobs.ts'
import { mappers } from '#catalog/mappers.ts'
import { notifiers } from '#catalog/notifiers.ts'
import { targets } from '#catalog/targets.ts'
import { valueSources } from '#catalog/value-sources.ts'
import { tasks } from '#catalog/workflow-tasks.ts'
import type { Catalog } from '#sdk/module/catalog.ts'

/** Everything this build of Gatehouse can be configured with. */
export const catalog: Catalog = {
  auditSinks,
  authMechanisms,
  authorizations,
  customTasks,
  directoryInserts,
  dynamicWorkflows,
  filters,
  jobs,
  mappers,
  notifiers,
  targets,
  tasks,
  valueSources,
}
