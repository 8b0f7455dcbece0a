import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import { checkMail } from '#sdk/mail/mail.ts'
import { accountExists, accountNamed, takenValues } from '#sdk/target/new-account.ts'
import type { Target, TargetRequest } from '#sdk/target/target.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import { next, type PreviewContext, type StepEffects, type TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import { type Actor, approvalRow, ownTarget } from '#workflows/approvals/approval-audit.ts'
import type { ExistingAccount } from '#workflows/approvals/desk-requests.ts'
import { branchPlace } from '#workflows/definitions/definitions.ts'
import type { Approval } from '#workflows/record/approval.ts'
import { accountOrigin } from '#workflows/steps/account-origin.ts'
import { requestObject, type StepFailure } from '#workflows/steps/execute-steps.ts'
import { currentUser, type RunProgress } from '#workflows/steps/run-progress.ts'
import { beginStep, endStep, nextPosition, type Position, positionText } from '#workflows/steps/walk.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { guardedWrites } from '#workflows/targets/new-accounts.ts'
import { maskRun, maskStored } from './masked-secrets.ts'
import { PreviewLimit, PreviewSteps } from './preview-steps.ts'
import { previewTarget, UnreadableTarget } from './preview-target.ts'
import { isPassing } from './retry-policy.ts'
import { RunSealer, restoreRun, restoreStoredRun, saveRun } from './saved-run.ts'
import type { ReadingParts, Workflows } from './workflows.ts'

interface PreviewLimits {
  readonly millis: number
  readonly steps: number
  /** Of targets and the directory. */
  readonly reads: number
}

export const previewLimits: PreviewLimits = { millis: 3_000, steps: 200, reads: 20 }

export interface PreviewCalls {
  /** Called when all work has ended; later than the result if a target does not answer in time. */
  readonly onEnd?: () => void
  /** Called for a step that would fail because the run may only create accounts. */
  readonly onAccountExists?: (error: GatewayError) => void
  /**
   * Called for the first step that would fail. The preview then is a check: it ends there, at a task without a preview and
   * where the run has to wait, since no one knows what follows. It uses secrets as they are.
   */
  readonly onFailure?: (failure: StepFailure) => void
}

type PreviewParts = ReadingParts & PreviewCalls

/**
 * Shows what would follow if the run continued from here and all further approvals were granted. Consumes `state` and
 * changes nothing else. Secrets are masked before the first step, so the result can't contain any. When the time is up,
 * it returns the steps found so far.
 */
export const previewRun = (state: RunProgress, workflows: Workflows, calls: PreviewCalls = {}): Promise<Preview> =>
  workflows.reading(state.head.workflow, (parts) => walkThrough(state, { ...parts, ...calls }))

async function walkThrough(
  state: RunProgress,
  parts: PreviewParts,
  limits: PreviewLimits = previewLimits,
): Promise<Preview> {
  if (parts.onFailure === undefined) maskRun(state)
  const steps = new PreviewSteps()
  const late = Promise.withResolvers<never>()
  const abort = new AbortController()
  const timer = setTimeout(() => {
    const error = new PreviewLimit('it took too long')
    abort.abort(error)
    late.reject(error)
  }, limits.millis)
  try {
    const walk = new PreviewRun(state, parts, steps, limits, abort.signal).walk().finally(parts.onEnd)
    await Promise.race([walk, late.promise])
  } catch (error) {
    if (!(error instanceof PreviewLimit)) throw error
    steps.end()
  } finally {
    clearTimeout(timer)
  }
  return steps.preview
}

class PreviewRun {
  readonly #state: RunProgress
  readonly #parts: PreviewParts
  readonly #steps: PreviewSteps
  readonly #limits: PreviewLimits
  readonly #abort: AbortSignal
  readonly #targets = new Map<string, Target>()
  #reads = 0
  /** The target that the step called last. */
  #called: string | undefined

  constructor(state: RunProgress, parts: PreviewParts, steps: PreviewSteps, limits: PreviewLimits, abort: AbortSignal) {
    this.#state = state
    this.#parts = parts
    this.#steps = steps
    this.#limits = limits
    this.#abort = abort
  }

  async walk(): Promise<void> {
    const { definitions } = this.#parts
    let left = this.#limits.steps
    for (let at = nextPosition(this.#state, definitions); at; at = nextPosition(this.#state, definitions)) {
      if (left-- <= 0) throw new PreviewLimit('there are too many steps')
      beginStep(this.#state)
      const outcome = await this.#step(at)
      this.#abort.throwIfAborted()
      if (outcome.kind === 'call') this.#steps.add({ kind: 'workflow', name: outcome.workflow, apart: false })
      const wait = endStep(this.#state, at, outcome, definitions)
      if (wait === undefined) continue
      if (this.#parts.onFailure !== undefined) return
      if ('until' in wait) {
        this.#steps.add({ kind: 'wait', until: wait.until })
        this.#state.signal = { kind: 'time' }
      } else {
        this.#steps.add({ kind: 'approval', label: wait.approval.label })
        this.#state.signal = { kind: 'approval', approval: '', approved: true }
      }
    }
  }

  /** A task without a preview does not hide those after it, unless its result decides which of its subtasks run. */
  async #step(at: Position): Promise<TaskOutcome> {
    const { task, name, taskType } = at.step
    const { onFailure } = this.#parts
    this.#called = undefined
    try {
      if (task.preview !== undefined) return await task.preview(this.#context())
      this.#steps.add({ kind: 'unforeseen', task: name ?? taskType })
    } catch (thrown) {
      if (thrown instanceof PreviewLimit) throw thrown
      const error = asGatewayError(thrown)
      if (onFailure !== undefined) {
        onFailure({ error, task: positionText(at), target: this.#called })
        throw new PreviewLimit('the step would fail')
      }
      const { id, workflow } = this.#state.head
      const where = { workflowId: id, workflow, task: positionText(at) }
      if (error.code === 'ACCOUNT_EXISTS') this.#parts.onAccountExists?.(error)
      this.#parts.log.info('the preview of a step failed', { ...where, code: error.code, reason: error.message })
      this.#steps.add({ kind: 'unforeseen', task: name ?? taskType, reason: error.publicText })
    }
    if (onFailure !== undefined || this.#hasSubtasks(at))
      throw new PreviewLimit('the preview does not know which subtasks would run')
    return next
  }

  #hasSubtasks({ frame, index }: Position): boolean {
    const { lists } = this.#parts.definitions(frame.workflow, frame.hash)
    return (['onSuccess', 'onFailure'] as const).some((branch) => lists.has(branchPlace(frame.place, index, branch)))
  }

  #context(): PreviewContext {
    const { head } = this.#state
    const { request, signal } = this.#state
    const forTarget = (target: string): TargetRequest => {
      this.#called = target
      return {
        workflow: { id: head.id, name: head.workflow },
        idempotencyKey: `${head.id}/preview`,
        requestor: head.requester,
        params: requestObject(request),
        log: silentLogger,
        audit: () => {},
        signal: this.#abort,
        newAccount: this.#state.newAccount === undefined ? undefined : accountOrigin(this.#state, target),
      }
    }
    return {
      user: currentUser(this.#state),
      request,
      run: head,
      log: silentLogger,
      effects: this.#effects,
      forTarget,
      target: (target) => this.#target(target),
      directory: this.#directory,
      signal,
    }
  }

  #target(name: string): Target {
    const known = this.#targets.get(name)
    if (known !== undefined) return known
    const parts = { name, steps: this.#steps, countRead: () => this.#countRead() }
    const preview = previewTarget(this.#parts.target(name), parts)
    const target = { ...preview, ...guardedWrites(preview) }
    this.#targets.set(name, target)
    return target
  }

  readonly #directory: Pick<Directory, 'search' | 'entry'> = {
    search: async (search) => {
      this.#countRead()
      const found = await this.#parts.directory.search(search)
      return found.map(masked)
    },
    entry: async (identity) => {
      this.#countRead()
      const found = await this.#parts.directory.entry(identity)
      return found && masked(found)
    },
  }

  readonly #effects: StepEffects = {
    mail: (mail) => {
      checkMail(mail)
      this.#steps.add({ kind: 'mail', recipient: mail.recipient, subject: mail.subject })
    },
    grant: ({ target, kind, name, expires }) => {
      const now = this.#parts.clock().getTime()
      const end = 'at' in expires ? expires.at : new Date(now + expires.inMillis)
      this.#steps.add({ kind: 'end', target, of: kind, name, expires: end })
    },
    start: ({ head: { workflow: name } }) => this.#steps.add({ kind: 'workflow', name, apart: true }),
    beginPassword: async () => ({ written: () => {}, refused: async () => {} }),
  }

  #countRead(): void {
    this.#abort.throwIfAborted()
    if (++this.#reads > this.#limits.reads) throw new PreviewLimit('there are too many reads')
  }
}

const masked = (entry: DirectoryEntry): DirectoryEntry => ({ ...entry, attributes: maskStored(entry.attributes) })

/**
 * The first step that would be refused, as far as targets show it before they are changed; undefined if there is none.
 * Only runs that write several targets are previewed for it: a single target refuses its first write just as early.
 */
export async function refusalOf(state: RunProgress, workflows: Workflows): Promise<StepFailure | undefined> {
  if (state.newAccount !== undefined || !workflows.writesSeveralTargets(state.head.workflow)) return undefined
  let failure: StepFailure | undefined
  const onFailure = (found: StepFailure): void => {
    failure = found
  }
  try {
    await previewRun(restoreRun(state.head, saveRun(state)), workflows, { onFailure })
  } catch {
    // The run itself fails in the same way.
    return undefined
  }
  return failure !== undefined && isRefusal(failure.error) ? failure : undefined
}

/** Another attempt can't help, or needs a newer version of what the run is based on. */
const isRefusal = (error: GatewayError): boolean =>
  error instanceof UnreadableTarget ||
  (error.isRefusal && (!isPassing(error.code) || error.code === 'VERSION_MISMATCH'))

interface AccountConflicts {
  readonly existing: ExistingAccount
  /** Why the run would be refused; absent if nothing exists. */
  readonly error?: GatewayError
}

/**
 * What already exists of the account that the run should create: unique values in the directory, and whether a
 * target would refuse it if the run continued from here. Undefined if the run may also change accounts, or has
 * begun to create. The run itself does not advance. Throws errors of the directory; a target that does not answer
 * is skipped here, and the write asks it again.
 */
export async function accountConflicts(
  state: RunProgress,
  workflows: Workflows,
): Promise<AccountConflicts | undefined> {
  const { id, workflow } = state.head
  const { newAccount } = state
  if (newAccount === undefined || newAccount.created.length > 0 || state.plannedChanges !== undefined) return undefined
  return await workflows.reading(workflow, async (parts) => {
    // An account that an interrupted attempt created is in the directory, and is not a conflict.
    const { rows } = await parts.audit.list({ workflowId: id, limit: 500 })
    if (rows.some(({ kind, action, target }) => kind === 'entry' && action === 'add' && target !== ownTarget)) {
      return undefined
    }
    const { userID } = state.user
    const taken = await takenValues(parts.directory, newAccount.unique)
    const refused: GatewayError[] = []
    const copy = restoreRun(state.head, saveRun(state))
    await walkThrough(copy, { ...parts, onAccountExists: (error) => refused.push(error) })
    const others = taken.filter(({ value }) => !sameLogin(value, userID))
    const login = others.length < taken.length || refused.length > 0
    const [other] = others
    // The preview may have "created" other accounts before; the run itself has not.
    const error = login
      ? accountExists(accountNamed(userID), [])
      : other && accountExists(`with this ${other.attribute}`, [])
    return { existing: { login, attributes: others.map(({ attribute }) => attribute) }, ...(error && { error }) }
  })
}

const busy = (reason: string): GatewayError =>
  new GatewayError('TOO_MANY_REQUESTS', reason, {
    publicText: 'Other approvals are being previewed. Try again in a few seconds.',
    retryAfter: 3,
  })

const failedPreview: Preview = { steps: [], whole: false }

export interface ApprovalPreviewParts {
  readonly runs: RunStore
  readonly secrets: SecretBox
  readonly workflows: () => Workflows
  readonly log: Logger
  readonly clock: Clock
}

/** Previews what follows an approval, by walking through the run that waits for it. */
export class ApprovalPreview {
  readonly #parts: ApprovalPreviewParts
  /** A preview reads from targets, which have other work: two at once for a user, eight for all. */
  readonly #previews = new KeyedQueue({ width: 2, maxPerKey: 2, maxPending: 8, refuse: busy })

  readonly #preview: typeof previewRun

  constructor(parts: ApprovalPreviewParts, preview = previewRun) {
    this.#parts = parts
    this.#preview = preview
  }

  /**
   * Undefined if the run no longer waits. The caller has checked that `by` may decide. Throws TOO_MANY_REQUESTS and
   * nothing else.
   */
  async of(approval: Approval, by: string): Promise<Preview | undefined> {
    const leave = await this.#previews.enter(by.toLowerCase())
    try {
      const workflows = this.#parts.workflows()
      const state = await this.#restore(approval, by)
      if (state === undefined) {
        leave()
        return undefined
      }
      await workflows.load(state)
      // The slot is occupied until slow targets have answered, although the result does not wait for them.
      return await this.#preview(state, workflows, { onEnd: leave })
    } catch (err) {
      leave()
      this.#parts.log.warn('the preview of an approval failed', { approval: approval.id, err })
      return failedPreview
    }
  }

  /** Whether the account that the run should create exists. Throws errors of the directory. */
  async existing(approval: Approval): Promise<ExistingAccount | undefined> {
    return (await this.#conflicts(approval))?.existing
  }

  /**
   * If the account that the run should create exists, wakes the run, which then fails: the approval is closed, and
   * the reason is returned.
   */
  async refuse(approval: Approval, actor: Actor): Promise<GatewayError | undefined> {
    const error = (await this.#conflicts(approval))?.error
    if (error === undefined) return undefined
    const { runs, clock } = this.#parts
    const row = approvalRow(approval, actor, clock(), `closed: ${error.code}`)
    await runs.signal(approval.run.id, { kind: 'time' }, { audit: [row] })
    return error
  }

  async #conflicts(approval: Approval): Promise<AccountConflicts | undefined> {
    const workflows = this.#parts.workflows()
    const state = await this.#restore(approval, '')
    if (state === undefined) return undefined
    await workflows.load(state)
    return await accountConflicts(state, workflows)
  }

  /** The run as if `by` had approved it just now. */
  async #restore({ id, run: { id: runId } }: Approval, by: string): Promise<RunProgress | undefined> {
    const { runs, secrets } = this.#parts
    const run = await runs.getWhole(runId)
    if (run?.state !== 'waiting') return undefined
    const state = await restoreStoredRun(run, new RunSealer(secrets, runId))
    state.signal = { kind: 'approval', approval: id, approved: true, by }
    state.approval = id
    return state
  }
}
