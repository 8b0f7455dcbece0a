import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { TargetHost } from '#sdk/target/target-module.ts'
import type { TaskHost } from '#sdk/workflow/workflow-task.ts'

/** One object that satisfies the host of every slot; a module sees only its slot's part. */
export type EngineHost = FilterHost & AuthHost & TaskHost & TargetHost

export type HostFor = (name: string, className: string, at: string) => EngineHost
