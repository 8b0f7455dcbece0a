import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import type { PreparedTask, TaskContext, TaskHost, TaskOutcome, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { copyUser } from '#sdk/workflow/workflow-user.ts'
import { noEffects } from '#testing/workflows/no-effects.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import { createDefinition, type Definition } from '#workflows/definitions/definitions.ts'
import { restoreRun, type SavedRun, saveRun } from '#workflows/runs/saved-run.ts'
import { currentUser, type RunProgress } from './run-progress.ts'
import { beginStep, type DefinitionOf, endStep, nextPosition, type Position, positionText, rootFrame } from './walk.ts'

/** A task of a generated tree: its action, and its branches. */
interface Node {
  readonly does: 'next' | 'stop' | 'onSuccess' | 'onFailure' | 'copy' | 'call' | 'last'
  readonly async: boolean
  readonly onSuccess: readonly Node[]
  readonly onFailure: readonly Node[]
}

const listOf = (depth: number): fc.Arbitrary<Node[]> =>
  depth === 0
    ? fc.constant([])
    : fc.array(
        fc.record<Node>({
          does: fc.constantFrom('next', 'next', 'stop', 'onSuccess', 'onFailure', 'copy', 'call', 'last'),
          async: fc.boolean(),
          onSuccess: listOf(depth - 1),
          onFailure: listOf(depth - 1),
        }),
        { maxLength: 4 },
      )

const trees = listOf(3)

/** Executes the run to its end. */
async function walk(
  state: RunProgress,
  definitions: DefinitionOf,
  runTask: (position: Position) => TaskOutcome | Promise<TaskOutcome>,
): Promise<void> {
  for (let at = nextPosition(state, definitions); at !== undefined; at = nextPosition(state, definitions)) {
    beginStep(state)
    endStep(state, at, await runTask(at), definitions)
  }
}

const newUser = (): WorkflowUser => ({ userID: 'u', attributes: new Attributes(), groups: [], keepGroups: false })

/** Each task writes its place into its user; the trace is what it saw. */
function prepare(nodes: readonly Node[], place: string, trace: string[]): PreparedTask[] {
  return nodes.map((node, index) => {
    const here = `${place}/${index}`
    const outcome = (user: WorkflowUser): TaskOutcome => {
      switch (node.does) {
        case 'copy':
          return { kind: 'branch', branch: 'onSuccess', user: copyUser(user) }
        case 'onSuccess':
        case 'onFailure':
          return { kind: 'branch', branch: node.does }
        case 'last':
          return { kind: 'branch', branch: 'onFailure', end: 'denied' }
        case 'call':
          return { kind: 'call', workflow: 'called' }
        default:
          return { kind: node.does }
      }
    }
    const run = ({ user }: TaskContext) => {
      user.attributes.add('seen', [here])
      trace.push(`${here}:${user.attributes.values('seen').length}`)
      return node.async ? Promise.resolve(outcome(user)) : outcome(user)
    }
    return {
      taskType: node.does,
      path: [],
      flow: noFlow,
      calls: [],
      onSuccess: prepare(node.onSuccess, `${here}/s`, trace),
      onFailure: prepare(node.onFailure, `${here}/f`, trace),
      create: async () => ({ run }),
    }
  })
}

/** The same semantics by recursion. False if the run was stopped. */
function recurse(
  nodes: readonly Node[],
  called: readonly Node[],
  place: string,
  user: WorkflowUser,
  trace: string[],
): boolean {
  for (const [index, node] of nodes.entries()) {
    const here = `${place}/${index}`
    user.attributes.add('seen', [here])
    trace.push(`${here}:${user.attributes.values('seen').length}`)
    if (node.does === 'stop') return false
    if (node.does === 'last') {
      recurse(node.onFailure, called, `${here}/f`, user, trace)
      return false
    }
    const goesOn =
      node.does === 'next' ||
      (node.does === 'call' && recurse(called, [], 'called', user, trace)) ||
      (node.does === 'copy' && recurse(node.onSuccess, called, `${here}/s`, copyUser(user), trace)) ||
      (node.does === 'onSuccess' && recurse(node.onSuccess, called, `${here}/s`, user, trace)) ||
      (node.does === 'onFailure' && recurse(node.onFailure, called, `${here}/f`, user, trace))
    if (!goesOn) return false
  }
  return true
}

const withoutCalls = (nodes: readonly Node[]): Node[] =>
  nodes.map((node) => ({
    ...node,
    does: node.does === 'call' ? 'next' : node.does,
    onSuccess: withoutCalls(node.onSuccess),
    onFailure: withoutCalls(node.onFailure),
  }))

async function define(name: string, nodes: readonly Node[], trace: string[]): Promise<Definition> {
  const tasks = prepare(nodes, name, trace)
  const config = {
    name,
    namespace: undefined,
    at: '',
    label: '',
    description: '',
    inList: false,
    orgId: undefined,
    parameters: [],
  }
  return createDefinition({ ...config, hash: `${name}#1`, source: '', tasks }, {} as TaskHost, new Scope())
}

const start = (definition: Definition): RunProgress => ({
  head: runHead({ workflow: definition.name }),
  user: newUser(),
  request: new Map(),
  pins: new Map(),
  frames: [rootFrame(definition)],
  steps: 0,
})

const contextFor = (state: RunProgress): TaskContext => ({
  user: currentUser(state),
  request: state.request,
  run: state.head,
  log: silentLogger,
  effects: noEffects,
  forTarget: () => {
    throw new Error('no targets here')
  },
})

const runTask =
  (state: RunProgress) =>
  ({ step }: Position) =>
    step.task.run(contextFor(state))

describe('walk', () => {
  test('runs the same tasks as recursion, in the same order, on the same users', async () => {
    await fc.assert(
      fc.asyncProperty(trees, trees, async (nodes, other) => {
        const called = withoutCalls(other)
        const trace: string[] = []
        const definitions = new Map([
          ['main', await define('main', nodes, trace)],
          ['called', await define('called', called, trace)],
        ])
        const state = start(definitions.get('main') as Definition)
        await walk(state, (name) => definitions.get(name) as Definition, runTask(state))
        const expected: string[] = []
        const user = newUser()
        recurse(nodes, called, 'main', user, expected)
        expect(trace).toEqual(expected)
        expect(state.user.attributes.values('seen')).toEqual(user.attributes.values('seen'))
        expect(state.frames).toEqual([])
        expect(state.steps).toBe(expected.length)
      }),
    )
  })

  test('a run that is stored and restored between two steps does the same', async () => {
    await fc.assert(
      fc.asyncProperty(trees, fc.nat(20), async (nodes, cut) => {
        const whole: string[] = []
        recurse(withoutCalls(nodes), [], 'main', newUser(), whole)
        const trace: string[] = []
        const definition = await define('main', withoutCalls(nodes), trace)
        const state = start(definition)
        const interrupted = walk(
          state,
          () => definition,
          (position) => {
            if (state.steps > cut) throw new Error('killed')
            return runTask(state)(position)
          },
        )
        const finished = await interrupted.then(
          () => true,
          () => false,
        )
        if (!finished) {
          state.steps--
          const stored = JSON.parse(JSON.stringify(saveRun(state))) as SavedRun
          const resumed = restoreRun(state.head, stored)
          await walk(resumed, () => definition, runTask(resumed))
        }
        expect(trace).toEqual(whole)
      }),
    )
  })

  test('a workflow that calls itself ends with an error', async () => {
    const trace: string[] = []
    const definition = await define('main', [{ does: 'call', async: false, onSuccess: [], onFailure: [] }], trace)
    const state = start(definition)
    const run = walk(state, () => definition, runTask(state))
    await expect(run).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
    expect(trace.length).toBe(16)
  })

  test('the number of steps is limited', async () => {
    const node: Node = { does: 'next', async: false, onSuccess: [], onFailure: [] }
    const trace: string[] = []
    const definition = await define('main', Array<Node>(6).fill(node), trace)
    const state = { ...start(definition), steps: 9_995 }
    const run = walk(state, () => definition, runTask(state))
    await expect(run).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
    expect(trace.length).toBe(5)
  })

  test('a deep tree needs no deep call stack', async () => {
    let nodes: Node[] = []
    for (let i = 0; i < 2000; i++) nodes = [{ does: 'onSuccess', async: false, onSuccess: nodes, onFailure: [] }]
    const definition = await define('main', nodes, [])
    const state = start(definition)
    await walk(state, () => definition, runTask(state))
    expect(state.steps).toBe(2000)
  })

  test('a position prints as a path', () => {
    const frame = { workflow: 'w', hash: '', place: '2/onSuccess', next: 0 }
    expect(positionText({ frame, index: 1 })).toBe('w:2/onSuccess/1')
    expect(positionText({ frame: { ...frame, place: '' }, index: 0 })).toBe('w:0')
  })
})
