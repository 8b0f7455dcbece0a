import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { TaskHost } from '#sdk/workflow/workflow-task.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { PasswordChanges } from './service/password-changes.ts'
import type { ServedResetLinks } from './service/reset-links.ts'

/** What the filters of passwords use beside what every filter may use. */
export interface PasswordHost extends FilterHost {
  /** Passwords that users set themselves. */
  readonly passwords: PasswordChanges
  readonly runs: RunService
}

/** What the task that mails password links uses. */
export interface PasswordTaskHost extends TaskHost {
  readonly passwords: PasswordChanges
  /** The links of the filters of the configuration that let users set passwords; none if absent. */
  readonly resetLinks?: readonly ServedResetLinks[]
}
