import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, type GatewayError } from '#kernel/errors.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { checkMail } from '#sdk/mail/mail.ts'
import type { Target, TargetRequest } from '#sdk/target/target.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import { next, type PreviewContext, type StepEffects, type TaskOutcome } from '#sdk/workflow/workflow-task.ts'
import { branchPlace } from '#workflows/definitions/definitions.ts'
import { accountOrigin } from '#workflows/steps/account-origin.ts'
import type { StepFailure } from '#workflows/steps/execute-steps.ts'
import { requestObject } from '#workflows/steps/execute-steps.ts'
import { currentUser, type RunProgress } from '#workflows/steps/run-progress.ts'
import {
  beginStep,
  type DefinitionOf,
  endStep,
  nextPosition,
  type Position,
  positionText,
} from '#workflows/steps/walk.ts'
import { guardedWrites } from '#workflows/targets/new-accounts.ts'
import { maskRun, maskStored } from './masked-secrets.ts'
import { PreviewLimit, PreviewSteps } from './preview-steps.ts'
import { previewTarget } from './preview-target.ts'

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

interface PreviewParts extends PreviewCalls {
  readonly definitions: DefinitionOf
  readonly target: (name: string) => Target
  readonly directory: Pick<Directory, 'search' | 'entry'>
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Shows what would follow if the run continued from here and all further approvals were granted. Consumes `state` and
 * changes nothing else. Secrets are masked before the first step, so the result can't contain any. When the time is up,
 * it returns the steps found so far.
 */
export async function previewRun(
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
