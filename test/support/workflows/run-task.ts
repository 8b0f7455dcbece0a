import { Attributes } from '#identity/attributes.ts'
import type { Logger } from '#kernel/logger.ts'
import type { StepMail } from '#sdk/mail/mail.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import type {
  GrantedAccess,
  RequestMap,
  SetPassword,
  TaskContext,
  TaskHost,
  TaskOutcome,
  TaskSignal,
  WorkflowUser,
} from '#sdk/workflow/workflow-task.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import { parseTasks, recordingLogger, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'

export interface TaskRun {
  readonly outcome: TaskOutcome
  readonly user: WorkflowUser
  readonly mails: readonly StepMail[]
  readonly starts: readonly WorkflowCall[]
  readonly grants: readonly GrantedAccess[]
  readonly passwords: readonly SetPassword[]
  readonly request: RequestMap
  readonly log: Logger & { readonly lines: readonly object[] }
}

export interface TaskRunOptions {
  readonly user?: Partial<WorkflowUser>
  readonly attributes?: Readonly<Record<string, readonly string[]>>
  readonly request?: Readonly<Record<string, unknown>>
  readonly requestor?: string
  readonly caller?: string
  /** The expiry date that the requester chose. */
  readonly accessEnds?: Date
  readonly host?: TaskHost
  readonly signal?: TaskSignal
  readonly forTarget?: TaskContext['forTarget']
}

/** Runs a single task, and returns its requested effects. */
export async function runTask(spec: TaskSpec, options: TaskRunOptions = {}): Promise<TaskRun> {
  const { tasks, issues } = parseTasks([spec])
  const [task] = tasks
  if (task === undefined || !issues.ok) throw new Error(issues.list.map(({ message }) => message).join('\n'))
  const attributes = Attributes.from(options.attributes ?? {})
  const user: WorkflowUser = { userID: 'jjackson', attributes, groups: [], keepGroups: false, ...options.user }
  const mails: StepMail[] = []
  const starts: WorkflowCall[] = []
  const grants: GrantedAccess[] = []
  const passwords: SetPassword[] = []
  const request: RequestMap = new Map(Object.entries(options.request ?? {}))
  const log = recordingLogger()
  const created = await task.create(options.host ?? fakeModuleHost())
  const outcome = await created.run({
    user,
    request,
    run: runHead({
      id: 'run-1',
      workflow: 'w',
      requester: options.requestor ?? user.userID,
      caller: options.caller,
      accessEnds: options.accessEnds,
    }),
    log,
    effects: {
      mail: (mail) => void mails.push(mail),
      start: (call) => void starts.push(call),
      grant: (access) => void grants.push(access),
      beginPassword: async (password) => ({
        written: () => void passwords.push(password),
        refused: async () => {},
      }),
    },
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    forTarget:
      options.forTarget ??
      (() => {
        throw new Error('no targets in this test')
      }),
  })
  return { outcome, user, mails, starts, grants, passwords, request, log }
}
