import type { Registry } from '#kernel/registry.ts'
import type { AuditSinkModule } from '#sdk/audit/audit-sink.ts'
import type { AuthMechanismModule } from '#sdk/auth/auth-mechanism.ts'
import type { AuthorizationModule } from '#sdk/auth/authorization.ts'
import type { DirectoryInsertModule } from '#sdk/directory/directory-insert.ts'
import type { FilterModule } from '#sdk/filter/filter.ts'
import type { JobModule } from '#sdk/job/job.ts'
import type { MapperModule, ValueSourceModule } from '#sdk/mapper/mapper-module.ts'
import type { NotifierModule } from '#sdk/notifier/notifier.ts'
import type { PreparedTarget, TargetModule } from '#sdk/target-module/target-module.ts'
import type { DynamicWorkflowModule } from '#sdk/workflow/dynamic-workflow.ts'
import type { CustomTaskModule, TaskModule } from '#sdk/workflow/workflow-task.ts'

/** All modules, by slot. Configuration and engine receive it; only `catalog/` imports implementations. */
export interface Catalog {
  readonly auditSinks: Registry<AuditSinkModule>
  readonly authMechanisms: Registry<AuthMechanismModule>
  readonly authorizations: Registry<AuthorizationModule>
  readonly directoryInserts: Registry<DirectoryInsertModule>
  readonly dynamicWorkflows: Registry<DynamicWorkflowModule>
  readonly filters: Registry<FilterModule>
  readonly jobs: Registry<JobModule>
  readonly mappers: Registry<MapperModule>
  readonly notifiers: Registry<NotifierModule>
  readonly targets: Registry<TargetModule>
  /** Targets that exist without an object, by name. */
  readonly builtInTargets?: ReadonlyMap<string, PreparedTarget>
  readonly customTasks: Registry<CustomTaskModule>
  readonly valueSources: Registry<ValueSourceModule>
  readonly tasks: ReadonlyMap<string, TaskModule>
}
