import type { RunQuery, RunState } from '#domain/run.ts'
import { GatewayError } from '#kernel/errors.ts'

const defaultLimit = 100
const maxLimit = 500

const phases: ReadonlySet<string> = new Set<RunState>([
  'ready',
  'running',
  'waiting',
  'incident',
  'completed',
  'failed',
  'cancelled',
])
const isPhase = (word: string): word is RunState => phases.has(word)

/** What a list is narrowed by. A parameter that is mistyped would show more than was meant, so it is refused. */
export function readListQuery(query: URLSearchParams, byState: boolean): RunQuery {
  refuseOthers(query, ['name', 'subject', 'requestor', 'limit', 'after', ...(byState ? ['state'] : [])])
  const states = query.getAll('state').map((word) => {
    if (isPhase(word)) return word
    throw wrong(`state must be one of ${[...phases].join(', ')}.`)
  })
  const given = (name: 'name' | 'subject' | 'requestor' | 'after') => {
    const value = query.get(name)
    return value === null ? {} : { [name]: value }
  }
  return {
    ...(states.length === 0 ? {} : { states }),
    ...given('name'),
    ...given('subject'),
    ...given('requestor'),
    ...given('after'),
    limit: readNumber(query, 'limit', 1, maxLimit) ?? defaultLimit,
  }
}

/** The step behind which a timeline goes on. */
export function readStepQuery(query: URLSearchParams): number | undefined {
  refuseOthers(query, ['after'])
  return readNumber(query, 'after', 0, Number.MAX_SAFE_INTEGER)
}

function readNumber(query: URLSearchParams, name: string, min: number, max: number): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw wrong(`${name} must be a whole number from ${min} to ${max}.`)
}

function refuseOthers(query: URLSearchParams, known: readonly string[]): void {
  for (const name of query.keys()) {
    if (!known.includes(name)) throw wrong(`There is no query parameter "${name.slice(0, 80)}".`)
    if (name !== 'state' && query.getAll(name).length > 1) throw wrong(`${name} may be given once.`)
  }
}

const wrong = (publicText: string): GatewayError => new GatewayError('BAD_REQUEST', publicText, { publicText })
