import { ForesightEnds, ForesightNotes } from '#engine/foresight/foresight-notes.ts'
import { maskHeld, maskRun } from '#engine/foresight/masked-secrets.ts'
import { type PaperParts, PaperUsers } from '#engine/foresight/paper-users.ts'
import { accountOrigin, withNewAccounts } from '#engine/provisioning/new-accounts.ts'
import { branchPlace } from '#engine/workflow/definition.ts'
import { currentUser, type RunProgress } from '#engine/workflow/run-progress.ts'
import { requestObject } from '#engine/workflow/step-context.ts'
import {
  beginStep,
  type DefinitionOf,
  endStep,
  nextPosition,
  type Position,
  positionText,
} from '#engine/workflow/walk.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import { groupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { checkMail } from '#sdk/notifier/mail.ts'
import {
  type CreateOptions,
  type GroupChange,
  type GroupTarget,
  hasGroups,
  hasPasswords,
  type MemberGroupChange,
  nestsGroups,
  type Target,
  type TargetRequest,
} from '#sdk/target/target.ts'
import type { Foreseen } from '#sdk/workflow/foreseen.ts'
import type { StepEffects } from '#sdk/workflow/step-effects.ts'
import type { ForesightContext } from '#sdk/workflow/workflow-task.ts'
import { next, type TaskOutcome } from '#sdk/workflow/workflow-task.ts'

export interface ForesightLimits {
  readonly millis: number
  readonly steps: number
  /** Questions to targets and the directory. */
  readonly questions: number
}

export const foresightLimits: ForesightLimits = { millis: 3_000, steps: 200, questions: 20 }

export interface ForesightParts {
  readonly definitions: DefinitionOf
  readonly target: (name: string) => Target
  readonly directory: Pick<Directory, 'search' | 'entry'>
  readonly clock: Clock
  readonly log: Logger
  /** Called once nothing goes on any more, which is later than the answer where a target does not answer in time. */
  readonly onEnd?: () => void
  /** Called for a step at which a run that may only create accounts would be refused. */
  readonly onAccountExists?: (error: GatewayError) => void
}

/**
 * What would follow if the run went on from here, further approvals granted. The state is used up; nothing else is
 * changed anywhere. Secrets are taken out before the first step, so that none can be told. Ends in time, whatever
 * targets do, and tells then what was found so far.
 */
export async function foreseeRun(
  state: RunProgress,
  parts: ForesightParts,
  limits: ForesightLimits = foresightLimits,
): Promise<Foreseen> {
  maskRun(state)
  const notes = new ForesightNotes()
  const late = Promise.withResolvers<never>()
  const abort = new AbortController()
  const timer = setTimeout(() => {
    const error = new ForesightEnds('it took too long')
    abort.abort(error)
    late.reject(error)
  }, limits.millis)
  try {
    const walk = new PaperRun(state, parts, notes, limits, abort.signal).walk().finally(parts.onEnd)
    await Promise.race([walk, late.promise])
  } catch (error) {
    if (!(error instanceof ForesightEnds)) throw error
    notes.end()
  } finally {
    clearTimeout(timer)
  }
  return notes.foreseen
}

/** One run on paper. */
class PaperRun {
  readonly #state: RunProgress
  readonly #parts: ForesightParts
  readonly #notes: ForesightNotes
  readonly #limits: ForesightLimits
  readonly #abort: AbortSignal
  readonly #targets = new Map<string, Target>()
  #questions = 0

  constructor(
    state: RunProgress,
    parts: ForesightParts,
    notes: ForesightNotes,
    limits: ForesightLimits,
    abort: AbortSignal,
  ) {
    this.#state = state
    this.#parts = parts
    this.#notes = notes
    this.#limits = limits
    this.#abort = abort
  }

  async walk(): Promise<void> {
    const { definitions } = this.#parts
    let left = this.#limits.steps
    for (let at = nextPosition(this.#state, definitions); at; at = nextPosition(this.#state, definitions)) {
      if (left-- <= 0) throw new ForesightEnds('there are too many steps')
      beginStep(this.#state)
      const outcome = await this.#step(at)
      this.#abort.throwIfAborted()
      if (outcome.kind === 'call') this.#notes.add({ kind: 'workflow', name: outcome.workflow, apart: false })
      const wait = endStep(this.#state, at, outcome, definitions)
      if (wait === undefined) continue
      if ('until' in wait) {
        this.#notes.add({ kind: 'wait', until: wait.until })
        this.#state.signal = { kind: 'time' }
      } else {
        this.#notes.add({ kind: 'approval', label: wait.approval.label })
        this.#state.signal = { kind: 'approval', approval: '', approved: true }
      }
    }
  }

  /** Where a task cannot be foreseen, those behind it still are, unless nobody knows which of its subtasks would run. */
  async #step(at: Position): Promise<TaskOutcome> {
    const { task, name, taskType } = at.step
    try {
      if (task.foresee !== undefined) return await task.foresee(this.#context())
      this.#notes.add({ kind: 'unforeseen', task: name ?? taskType })
    } catch (thrown) {
      if (thrown instanceof ForesightEnds) throw thrown
      const error = asGatewayError(thrown)
      const { id, workflow } = this.#state
      const where = { workflowId: id, workflow, task: positionText(at) }
      if (error.code === 'ACCOUNT_EXISTS') this.#parts.onAccountExists?.(error)
      this.#parts.log.info('the preview of a step failed', { ...where, code: error.code, reason: error.message })
      this.#notes.add({ kind: 'unforeseen', task: name ?? taskType, reason: error.publicText })
    }
    if (this.#hasSubtasks(at)) throw new ForesightEnds('the preview does not know which subtasks would run')
    return next
  }

  #hasSubtasks({ frame, index }: Position): boolean {
    const { lists } = this.#parts.definitions(frame.workflow, frame.hash)
    return (['onSuccess', 'onFailure'] as const).some((branch) => lists.has(branchPlace(frame.place, index, branch)))
  }

  #context(): ForesightContext {
    const { id, workflow: name, requestor, caller, who, request, signal } = this.#state
    const workflow = { id, name }
    const forTarget = (target: string): TargetRequest => ({
      workflow,
      idempotencyKey: `${id}/foresight`,
      requestor,
      params: requestObject(request),
      log: silentLogger,
      audit: () => {},
      signal: this.#abort,
      ...(this.#state.newAccount === undefined ? {} : { newAccount: accountOrigin(this.#state, target) }),
    })
    return {
      user: currentUser(this.#state),
      request,
      workflow,
      requestor,
      who,
      ...(caller === undefined ? {} : { caller }),
      log: silentLogger,
      effects: this.#effects,
      forTarget,
      target: (target) => this.#target(target),
      directory: this.#directory,
      ...(signal === undefined ? {} : { signal }),
    }
  }

  #target(name: string): Target {
    const known = this.#targets.get(name)
    if (known !== undefined) return known
    const parts = { name, notes: this.#notes, ask: () => this.#ask() }
    const paper = withNewAccounts(paperTarget(this.#parts.target(name), parts))
    this.#targets.set(name, paper)
    return paper
  }

  /** What is read there is masked as well. */
  readonly #directory: Pick<Directory, 'search' | 'entry'> = {
    search: async (search) => {
      this.#ask()
      const found = await this.#parts.directory.search(search)
      return found.map(masked)
    },
    entry: async (identity) => {
      this.#ask()
      const found = await this.#parts.directory.entry(identity)
      return found && masked(found)
    },
  }

  readonly #effects: StepEffects = {
    mail: (mail) => {
      checkMail(mail)
      this.#notes.add({ kind: 'mail', recipient: mail.recipient, subject: mail.subject })
    },
    grant: ({ target, kind, name, expires }) => {
      const now = this.#parts.clock().getTime()
      const end = 'at' in expires ? expires.at : new Date(now + expires.inMillis)
      this.#notes.add({ kind: 'end', target, of: kind, name, expires: end })
    },
    start: ({ name }) => this.#notes.add({ kind: 'workflow', name, apart: true }),
    beginPassword: async () => ({ written: () => {}, refused: async () => {} }),
  }

  #ask(): void {
    this.#abort.throwIfAborted()
    if (++this.#questions > this.#limits.questions) throw new ForesightEnds('there are too many questions')
  }
}

const masked = (entry: DirectoryEntry): DirectoryEntry => ({ ...entry, attributes: maskHeld(entry.attributes) })

/**
 * A target as it would be after what was written to it: reads come from the real one, writes are noted and change this
 * one alone. It has the abilities of the real one, so that tasks behave as they would.
 */
function paperTarget(target: Target, parts: PaperParts): Target {
  const users = new PaperUsers(target, parts)
  const groups = hasGroups(target) ? new PaperGroups(target, parts) : undefined
  return {
    renamesUsers: target.renamesUsers ?? false,
    keepsVersions: target.keepsVersions ?? false,
    findUser: (userID, attributes, request) => users.findUser(userID, attributes, request),
    createUser: (user, attributes, request) => users.createUser(user, attributes, request),
    syncUser: (user, options, request) => users.syncUser(user, options, request),
    deleteUser: (user, request) => users.deleteUser(user, request),
    ...(hasPasswords(target) && { setUserPassword: users.setUserPassword.bind(users) }),
    ...(groups && {
      findGroup: groups.findGroup.bind(groups),
      createGroup: groups.createGroup.bind(groups),
      updateGroup: groups.updateGroup.bind(groups),
      deleteGroup: groups.deleteGroup.bind(groups),
      ...(nestsGroups(target) && { changeMemberGroups: groups.changeMemberGroups.bind(groups) }),
    }),
  }
}

type Values = Readonly<Record<string, readonly string[]>>

/** The groups of a target on paper. The target itself is asked once for each, and never written. */
class PaperGroups {
  readonly #target: GroupTarget
  readonly #parts: PaperParts
  readonly #known = new Map<string, Group | undefined>()

  constructor(target: GroupTarget, parts: PaperParts) {
    this.#target = target
    this.#parts = parts
  }

  async findGroup(name: string): Promise<Group | undefined> {
    const key = name.toLowerCase()
    if (!this.#known.has(key)) {
      this.#parts.ask()
      this.#known.set(key, await this.#target.findGroup(name))
    }
    return this.#known.get(key)
  }

  async createGroup(name: string, attributes: Values, _: unknown, options: CreateOptions = {}): Promise<void> {
    const found = await this.findGroup(name)
    if (found !== undefined && options.mustBeNew === true) {
      throw new GatewayError('CONFLICT', `there is a group "${name}" already`)
    }
    if (found === undefined) {
      this.#note('create', name, Object.entries(attributes), () => [])
      this.#put(name, { id: name, name, members: [], attributes: Attributes.from(attributes) })
    } else if (groupChanges(found, found.name, Object.entries(attributes)).length > 0) {
      throw new GatewayError('CONFLICT', `there is another group "${name}" already`)
    }
  }

  async updateGroup(name: string, { newName, attributes = {} }: GroupChange): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no group "${name}"`)
    const wanted = Object.entries(attributes)
    this.#note('change', found.name, wanted, (attribute, values) => heldBy(found, attribute, values), newName)
    const changed = (found.attributes ?? new Attributes()).clone()
    for (const [attribute, values] of wanted) changed.set(attribute, values)
    const { description: _, ...rest } = found
    if (newName !== undefined) this.#put(name, undefined)
    this.#put(newName ?? name, { ...rest, name: newName ?? found.name, attributes: changed })
  }

  async deleteGroup(name: string): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) return
    this.#note('delete', found.name, [], () => [])
    this.#put(name, undefined)
  }

  /** Who the members are is not read for a preview, so what is asked for counts as a change. */
  async changeMemberGroups(name: string, { add, remove }: MemberGroupChange): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no group "${name}"`)
    this.#note('change', found.name, [['members', add.map((group) => group.name)]], () =>
      remove.map((group) => group.name),
    )
  }

  #put(name: string, group: Group | undefined): void {
    this.#known.set(name.toLowerCase(), group)
  }

  #note(
    action: 'create' | 'change' | 'delete',
    name: string,
    wanted: readonly (readonly [string, readonly string[]])[],
    held: (attribute: string, values: readonly string[]) => readonly string[],
    newName?: string,
  ): void {
    this.#parts.notes.addEntry({
      kind: 'group',
      action,
      target: this.#parts.name,
      name,
      attributes: wanted.map(([attribute, values]) => [attribute, held(attribute, values), values]),
      ...(newName === undefined || newName === name ? {} : { newName }),
    })
  }
}

/** Attributes that the target does not tell count as they should be. */
function heldBy({ attributes, description }: Group, name: string, values: readonly string[]): readonly string[] {
  if (name.toLowerCase() === 'description' && description !== undefined) return [description]
  return attributes === undefined ? values : attributes.values(name)
}
