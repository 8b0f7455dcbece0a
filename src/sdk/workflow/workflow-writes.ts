import type { AttributePlace, AttributeWrite, TaskFlow, WorkflowWrites } from '#sdk/flow/flow.ts'
import type { PreparedMapping } from '#sdk/mapper/mapping.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'

/** Workflows and targets, during a check or at run time. */
interface WorkflowSource {
  tasks(workflow: string): readonly PreparedTask[] | undefined
  /** The target's `targetAttributes`; undefined if everything passes unmapped. */
  mapping(target: string): PreparedMapping | undefined
}

/** For an unknown workflow. */
export const unknownWrites: WorkflowWrites = {
  ofUser: () => 'unknown',
  ofGroup: () => 'unknown',
  passwords: 'unknown',
  severalTimes: false,
}

/** More task visits than a real configuration has; beyond them, nothing is reported. */
const maxVisits = 10_000

/** What the workflow writes, and which initial attributes it comes from. */
export function workflowWrites(source: WorkflowSource, workflow: string): WorkflowWrites {
  const walk = new WriteWalk(source, countWrites((name) => source.tasks(name), workflow).severalTimes)
  walk.workflow(workflow, { others: true, made: new Map() })
  return walk.isUnknown ? { ...unknownWrites, severalTimes: walk.severalTimes } : walk
}

/** How much of several systems a run may change, counting every branch and every call of a workflow. */
export interface WriteCounts {
  /** More than one step may change a system. */
  readonly severalTimes: boolean
  /** Users or groups of more than one target are created or changed. */
  readonly severalTargets: boolean
}

export function countWrites(
  tasksOf: (workflow: string) => readonly PreparedTask[] | undefined,
  workflow: string,
): WriteCounts {
  let visits = 0
  let writes = 0
  const targets = new Set<string>()
  const visit = (tasks: readonly PreparedTask[]): void => {
    for (const { flow, calls, onSuccess, onFailure } of tasks) {
      if (targets.size > 1 || ++visits > maxVisits) return
      if (flow.writes === true) writes++
      for (const write of [flow.provisions, flow.writesGroup]) if (write !== undefined) targets.add(write.target)
      visit(onSuccess)
      visit(onFailure)
      for (const name of calls) call(name)
    }
  }
  const running = new Set<string>()
  const call = (name: string): void => {
    // A workflow that calls itself is refused elsewhere.
    if (running.has(name)) return
    running.add(name)
    visit(tasksOf(name) ?? [])
    running.delete(name)
  }
  call(workflow)
  return { severalTimes: writes > 1 || visits > maxVisits, severalTargets: targets.size > 1 }
}

/** The names that a task sees, and which of the initial attributes the value of each comes from. */
interface Names {
  /** Every name that isn't in `made` is the attribute of that name. */
  readonly others: boolean
  readonly made: ReadonlyMap<string, readonly string[]>
}

class WriteWalk implements WorkflowWrites {
  readonly passwords: string[] = []
  readonly severalTimes: boolean
  isUnknown = false
  readonly #source: WorkflowSource
  readonly #running = new Set<string>()
  readonly #users = new Written()
  readonly #groups = new Written()
  #visits = 0

  constructor(source: WorkflowSource, severalTimes: boolean) {
    this.#source = source
    this.severalTimes = severalTimes
  }

  ofUser(attribute: string): readonly AttributeWrite[] | 'unknown' {
    return this.#users.of(attribute.toLowerCase())
  }

  ofGroup(attribute: string): readonly AttributeWrite[] | 'unknown' {
    return this.#groups.of(attribute.toLowerCase())
  }

  workflow(name: string, names: Names): Names {
    const tasks = this.#source.tasks(name)
    if (tasks === undefined || this.#running.has(name)) this.isUnknown = true
    if (tasks === undefined || this.isUnknown) return names
    this.#running.add(name)
    const after = this.#tasks(tasks, names)
    this.#running.delete(name)
    return after
  }

  #tasks(tasks: readonly PreparedTask[], names: Names): Names {
    return tasks.reduce((now, task) => this.#task(task, now), names)
  }

  #task({ flow, calls, onSuccess, onFailure }: PreparedTask, names: Names): Names {
    const { reads, produces, dropsOthers, mayRead = [], provisions, writesGroup } = flow
    if (++this.#visits > maxVisits || flow.opaque || mayRead === 'any') this.isUnknown = true
    if (this.isUnknown || mayRead === 'any') return names
    const isMapping = onSuccess.length > 0 && (produces.length > 0 || dropsOthers)
    const used = [...mayRead, ...(isMapping ? [] : reads.map(({ attribute }) => attribute))]
    for (const name of used) for (const origin of originsOf(names, name)) this.#use(origin)
    if (provisions !== undefined) this.#provision(provisions, names)
    if (writesGroup !== undefined) this.#writeGroup(writesGroup, names)
    if (isMapping) {
      this.#tasks(onSuccess, withMade({ ...names, others: !dropsOthers && names.others }, names, flow))
      this.#tasks(onFailure, names)
      return names
    }
    let after = produces.length === 0 ? names : withMade(names, names, { ...flow, reads: [] })
    for (const branch of [onSuccess, onFailure]) after = joined(after, this.#tasks(branch, after))
    for (const name of calls) after = this.workflow(name, after)
    return after
  }

  #use(origin: string): void {
    this.#users.used.add(origin)
    this.#groups.used.add(origin)
  }

  #provision({ target, attributes, password }: NonNullable<TaskFlow['provisions']>, names: Names): void {
    if (password === true) this.passwords.push(target)
    const mapping = this.#source.mapping(target)
    const listed = attributes?.map(({ attribute }) => attribute.toLowerCase())
    if (mapping === undefined) {
      this.#users.add(target, listed, names)
      return
    }
    if (mapping.opaque) this.isUnknown = true
    const mapped = withMade({ others: false, made: new Map() }, names, mapping)
    this.#users.add(target, listed, mapped)
  }

  #writeGroup({ target, attributes }: NonNullable<TaskFlow['writesGroup']>, names: Names): void {
    this.#groups.add(
      target,
      attributes?.map((name) => name.toLowerCase()),
      names,
    )
  }
}

/** Which attributes are written where. */
class Written {
  /** Attributes that a task uses without writing them. */
  readonly used = new Set<string>()
  readonly #writes = new Map<string, AttributeWrite[]>()
  /** Targets that get every attribute except those replaced by one of the names. */
  readonly #all: { readonly target: string; readonly replaced: Names['made'] }[] = []

  add(target: string, listed: readonly string[] | undefined, names: Names): void {
    if (listed === undefined && names.others) this.#all.push({ target, replaced: names.made })
    for (const name of listed ?? names.made.keys()) {
      for (const origin of originsOf(names, name)) {
        this.#writes.set(origin, [...(this.#writes.get(origin) ?? []), { target, attribute: name }])
      }
    }
  }

  of(attribute: string): readonly AttributeWrite[] | 'unknown' {
    if (this.used.has(attribute)) return 'unknown'
    const whole = this.#all.filter(({ replaced }) => !replaced.has(attribute))
    return [...(this.#writes.get(attribute) ?? []), ...whole.map(({ target }) => ({ target, attribute }))]
  }
}

function originsOf({ others, made }: Names, name: string): readonly string[] {
  const key = name.toLowerCase()
  return made.get(key) ?? (others ? [key] : [])
}

/** A derived value comes from its sources; if a task sets it to something else, it may still be kept. */
function withMade(base: Names, names: Names, { produces, reads }: Pick<TaskFlow, 'produces' | 'reads'>): Names {
  const made = new Map(base.made)
  for (const place of produces) {
    const key = place.attribute.toLowerCase()
    const sources = reads.filter((read) => isSamePlace(read, place))
    const origins = sources.flatMap(({ attribute }) => originsOf(names, attribute))
    made.set(key, sources.length > 0 ? [...new Set(origins)] : base.others ? originsOf(names, key) : [])
  }
  return { others: base.others, made }
}

function joined(a: Names, b: Names): Names {
  if (b.made === a.made) return a
  const made = new Map(a.made)
  for (const [name, origins] of b.made) made.set(name, [...new Set([...originsOf(a, name), ...origins])])
  return { others: a.others || b.others, made }
}

const isSamePlace = (a: AttributePlace, b: AttributePlace): boolean =>
  a.path === b.path || JSON.stringify(a.path) === JSON.stringify(b.path)
