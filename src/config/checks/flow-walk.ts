import type { Catalog } from '#config/configuration/catalog.ts'
import type { ConfigDocument } from '#config/context/config-document.ts'
import type { Draft, Gateway } from '#config/context/draft.ts'
import type { AttributePlace, TaskFlow } from '#sdk/flow/flow.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'

/** One way to start a workflow; without a gateway, with unknown attributes. */
export interface Start {
  readonly workflow: string
  readonly gateway: Gateway | undefined
  /** The caller who starts it may name any group. */
  readonly anyGroup?: boolean
}

/** A task that writes unbounded input to a target; `code`: a task whose code may have set what such a task writes. */
export interface UnboundWrite {
  readonly task: PreparedTask
  readonly document: ConfigDocument
  readonly what: 'attributes' | 'groups' | 'code'
}

/** An attribute that is used where no path produces it. */
export interface Missing {
  readonly place: AttributePlace
  readonly document: ConfigDocument
  readonly use: 'read' | 'provisioned'
  /** The target it is provisioned to. */
  readonly target: string | undefined
  /** What does produce attributes there, for people. */
  readonly origin: string
  readonly available: readonly string[]
}

/** What was provisioned to a target: lower-case names to names as written. */
interface TargetAttributes {
  readonly names: ReadonlyMap<string, string>
  readonly opaque: boolean
}

/** The attributes at one point of a run. */
interface State {
  readonly names: ReadonlyMap<string, string>
  readonly opaque: boolean
  /** The user may have any group. */
  readonly anyGroup: boolean
  /** Tasks before this point that run code, which may have set anything. */
  readonly code: readonly UnboundWrite[]
  origin(): string
  /** Names that tasks added since `origin`. */
  readonly added: readonly string[]
}

/** More task visits than a real configuration has; beyond them nothing is reported. */
const maxVisits = 100_000

/** Walks workflows task by task, as the engine would, with names in place of values. */
export class FlowWalk {
  readonly #draft: Draft
  readonly #catalog: Catalog
  readonly #attributes = new Map<string, { names: Map<string, string>; opaque: boolean }>()
  /** By place: the first path on which it was missing, or undefined once one path produced it. */
  readonly #uses = new Map<AttributePlace, Missing | undefined>()
  readonly #unbound = new Map<string, UnboundWrite>()
  readonly #running = new Set<string>()
  #visits = 0

  constructor(draft: Draft, catalog: Catalog) {
    this.#draft = draft
    this.#catalog = catalog
  }

  run({ workflow, gateway, anyGroup = false }: Start): void {
    this.#workflow(workflow, { ...startState(gateway), anyGroup })
  }

  /** Each task once for each kind. */
  unbound(): UnboundWrite[] {
    return this.#visits > maxVisits ? [] : [...this.#unbound.values()]
  }

  missing(): Missing[] {
    return this.#visits > maxVisits ? [] : [...this.#uses.values()].filter((use) => use !== undefined)
  }

  /** Undefined if no workflow writes to the target, so that others must fill it. */
  attributesOf(target: string): TargetAttributes | undefined {
    return this.#visits > maxVisits ? undefined : this.#attributes.get(target)
  }

  /** A workflow that is absent, or that calls itself, is reported elsewhere; here it could have done anything. */
  #workflow(name: string, state: State): State {
    const workflow = this.#draft.workflows.get(name)
    if (workflow === undefined || this.#running.has(name)) return { ...state, opaque: true }
    this.#running.add(name)
    const after = this.#tasks(workflow.config.tasks, state, workflow.document)
    this.#running.delete(name)
    return after
  }

  #tasks(tasks: readonly PreparedTask[], state: State, document: ConfigDocument): State {
    let now = state
    for (const task of tasks) now = this.#task(task, now, document)
    return now
  }

  #task(task: PreparedTask, state: State, document: ConfigDocument): State {
    if (++this.#visits > maxVisits) return state
    const { flow } = task
    for (const place of flow.reads) this.#use(place, 'read', undefined, state, document)
    if (flow.provisions !== undefined) this.#provision(task, flow.provisions, state, document)
    if (this.#catalog.tasks.get(task.taskType)?.branches === true) return this.#branch(task, state, document)
    let after = withProduced(state, flow.produces, flow.opaque)
    if (flow.takesAnyGroup === true) after = { ...after, anyGroup: true }
    if (flow.runsCode === true) {
      after = { ...after, anyGroup: true, code: [...after.code, { task, document, what: 'code' }] }
    }
    for (const name of task.calls) after = this.#workflow(name, after)
    return after
  }

  /** Subtasks of a task that produces something work on a copy; those of a condition work on the user itself. */
  #branch(task: PreparedTask, state: State, document: ConfigDocument): State {
    const { flow } = task
    if (flow.produces.length > 0 || flow.dropsOthers) {
      const inner = flow.dropsOthers
        ? {
            ...mappedState(flow.produces, flow.opaque, document, 'the strict mapping around it'),
            anyGroup: state.anyGroup,
            code: state.code,
          }
        : withProduced(state, flow.produces, flow.opaque)
      this.#tasks(task.onSuccess, inner, document)
      this.#tasks(task.onFailure, state, document)
      return state
    }
    const before = flow.opaque ? { ...state, opaque: true } : state
    const success = this.#tasks(task.onSuccess, before, document)
    const failure = this.#tasks(task.onFailure, before, document)
    return {
      ...before,
      names: new Map([...success.names, ...failure.names]),
      opaque: success.opaque || failure.opaque,
      anyGroup: success.anyGroup || failure.anyGroup,
      code: [...new Set([...success.code, ...failure.code])],
      added: [...new Set([...success.added, ...failure.added])],
    }
  }

  #provision(
    task: PreparedTask,
    { target, attributes, groups }: NonNullable<TaskFlow['provisions']>,
    state: State,
    document: ConfigDocument,
  ): void {
    const stored = this.#attributes.get(target) ?? { names: new Map<string, string>(), opaque: false }
    this.#attributes.set(target, stored)
    const written = this.#throughTarget(target, state)
    const unbound = (what: UnboundWrite['what']): void => {
      for (const write of [{ task, document, what }, ...state.code]) {
        this.#unbound.set(JSON.stringify([write.document.at(write.task.path), write.what]), write)
      }
    }
    if (attributes === undefined && written.opaque) unbound('attributes')
    if (groups === undefined && state.anyGroup) unbound('groups')
    if (attributes === undefined) {
      for (const [key, name] of written.names) stored.names.set(key, name)
      stored.opaque ||= written.opaque
      return
    }
    for (const place of attributes) {
      const isThere = this.#use(place, 'provisioned', target, written, document)
      if (isThere) stored.names.set(place.attribute.toLowerCase(), place.attribute)
    }
  }

  /** A target with its own mapping gets only what that produces. */
  #throughTarget(name: string, state: State): State {
    const target = this.#draft.targets.get(name)
    // What a target that could not be read receives is unknown.
    if (target === undefined) return { ...state, opaque: true }
    const { mapping } = target.config
    if (mapping === undefined) return state
    for (const place of mapping.reads) this.#use(place, 'read', undefined, state, target.document)
    return mappedState(mapping.produces, false, target.document, `the target ${name}`)
  }

  /** True when the attribute is, or may be, there. */
  #use(
    place: AttributePlace,
    use: Missing['use'],
    target: string | undefined,
    state: State,
    document: ConfigDocument,
  ): boolean {
    const key = place.attribute.toLowerCase()
    const isThere = state.opaque || state.names.has(key) || isPseudo(key)
    if (isThere) this.#uses.set(place, undefined)
    else if (!this.#uses.has(place)) {
      const added = state.added.length === 0 ? '' : `, and tasks before it add ${listed(state.added)}`
      const available = [...state.names.values()]
      this.#uses.set(place, { place, document, use, target, origin: `${state.origin()}${added}`, available })
    }
    return isThere
  }
}

function startState(gateway: Gateway | undefined): State {
  if (gateway === undefined)
    return { names: new Map(), opaque: true, anyGroup: false, code: [], origin: () => '', added: [] }
  const { produces, given } = gateway.flow
  const names = [...given, ...produces.map(({ attribute }) => attribute)]
  return {
    names: byKey(names),
    opaque: false,
    anyGroup: false,
    code: [],
    origin: () => gatewayMaps(gateway),
    added: [],
  }
}

function mappedState(
  produces: readonly AttributePlace[],
  opaque: boolean,
  document: ConfigDocument,
  who: string,
): State {
  const names = produces.map(({ attribute }) => attribute)
  const origin = (): string => {
    const place = produces[0] === undefined ? '' : ` (${document.at(produces[0].path)})`
    return `${who} maps ${listed(names)}${place}`
  }
  return { names: byKey(names), opaque, anyGroup: false, code: [], origin, added: [] }
}

function withProduced(state: State, produces: readonly AttributePlace[], opaque: boolean): State {
  if (produces.length === 0) return opaque ? { ...state, opaque: true } : state
  const names = produces.map(({ attribute }) => attribute)
  return {
    ...state,
    names: new Map([...state.names, ...byKey(names)]),
    opaque: state.opaque || opaque,
    added: [...new Set([...state.added, ...names])],
  }
}

const byKey = (names: readonly string[]): Map<string, string> =>
  new Map(names.map((name) => [name.toLowerCase(), name]))

/** The attributes with which a gateway starts its workflows, and where they are configured. */
export function gatewayMaps({ application, document, flow }: Gateway): string {
  const first = flow.produces[0]
  if (first === undefined) return `the gateway ${application} maps nothing`
  const names = listed(flow.produces.map(({ attribute }) => attribute))
  return `the gateway ${application} maps ${names} (${document.at(first.path)})`
}

/** Longer lists are printed as a number. */
const maxListed = 12

export function listed(names: Iterable<string>): string {
  const all = [...names]
  if (all.length <= maxListed) return all.length === 0 ? 'nothing' : all.join(', ')
  return `${all.slice(0, maxListed).join(', ')} and ${all.length - maxListed} more`
}

/** Names that mean something other than an attribute, and always exist. */
export const isPseudo = (key: string): boolean => key === 'tremolo_user_id' || key === 'groups'
