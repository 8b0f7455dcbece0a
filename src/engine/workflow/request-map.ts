import { GatewayError } from '#kernel/errors.ts'
import { isEngineKey, type WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { RequestMap } from '#sdk/workflow/workflow-task.ts'

const maxKeys = 256
const maxKeyLength = 256

/** How a run is executed; the only engine key that a caller may set. */
const execType = 'UNISON.EXEC.TYPE'
const synchronous = 'UNISON.EXEC.SYNC'
const asynchronous = 'UNISON.EXEC.ASYNC'

/** The request map of a run from what the caller passed. Throws BAD_REQUEST for engine keys and for too many keys. */
export function createRequestMap(params: Readonly<Record<string, string>>): RequestMap {
  const map: RequestMap = new Map()
  for (const key of Object.keys(params)) {
    if (map.size >= maxKeys) throw refused(`more than ${maxKeys} request parameters`)
    if (key.length === 0 || key.length > maxKeyLength) throw refused('a request parameter without a usable name')
    const value = params[key]
    if (typeof value !== 'string') throw refused(`request parameter "${key}" is not text`)
    if (key === execType) requireExecType(value)
    else if (isEngineKey(key)) throw refused(`request parameter "${key}" is a key of the engine`)
    map.set(key, value)
  }
  return map
}

/** The value of the call, or else of its request parameter; synchronous by default. */
export function isAsynchronous({ asynchronous: said, params }: Pick<WorkflowCall, 'asynchronous' | 'params'>): boolean {
  return said ?? (Object.hasOwn(params, execType) && params[execType] === asynchronous)
}

function requireExecType(value: string): void {
  if (value !== synchronous && value !== asynchronous) throw refused(`"${value}" is not an execution type`)
}

const refused = (detail: string): GatewayError =>
  new GatewayError('BAD_REQUEST', detail, { publicText: 'A request parameter is not allowed.' })
