import { readFileSync } from 'node:fs'
import fengari from 'fengari'
import { expect, test } from 'vitest'
import { objectVerdict, type ReadOutcome, statusToWrite } from '#config/watch/object-status.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'

const script = readFileSync('deploy/argocd/health.lua', 'utf8')
const { lua, lauxlib, lualib, to_luastring: bytesOf } = fengari

interface Health {
  readonly status: string
  readonly message: string
}

/** What Argo CD shows for the object: it sets `obj` and runs the script. */
function healthOf(object: JsonObject): Health {
  const state = lauxlib.luaL_newstate()
  lualib.luaL_openlibs(state)
  const program = `obj = ${asLua(object)}
local function check()
${script}
end
local health = check()
return health.status, health.message`
  if (lauxlib.luaL_dostring(state, bytesOf(program)) !== lua.LUA_OK) throw new Error(lua.lua_tojsstring(state, -1))
  return { status: lua.lua_tojsstring(state, -2), message: lua.lua_tojsstring(state, -1) }
}

function asLua(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return 'nil'
  if (typeof value === 'string')
    return `"${value.replace(/[\\"\n]/g, (found) => (found === '\n' ? '\\n' : `\\${found}`))}"`
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return `{${value.map(asLua).join(', ')}}`
  return `{${Object.entries(value)
    .map(([name, field]) => `[${asLua(name)}] = ${asLua(field)}`)
    .join(', ')}}`
}

const place = 'Workflow/identity/join'
const error = (file: string) =>
  ({ level: 'error', file, hasLines: false, line: 1, column: 1, path: 'spec.tasks', message: 'is "required"' }) as const

/** An object with the status that a gateway writes after such a load. */
function objectAfter(outcome: ReadOutcome, generation = 3): JsonObject {
  const verdict = objectVerdict({ place, runs: false }, outcome)
  const status = statusToWrite(undefined, verdict, 3, new Date())
  return { kind: 'Workflow', metadata: { name: 'join', generation }, ...(status === undefined ? {} : { status }) }
}

test.each<[string, ReadOutcome, string, RegExp]>([
  ['served', { issues: [], found: [], applied: true }, 'Healthy', /^served$/],
  ['with an error', { issues: [error(place)], found: [], applied: false }, 'Degraded', /^spec\.tasks: is "required"$/],
  [
    'behind an error elsewhere',
    { issues: [error('Org/identity/all')], found: [], applied: false },
    'Progressing',
    /Org\/identity\/all/,
  ],
  ['not started', { issues: [], found: [], applied: false, failure: 'no database' }, 'Degraded', /^no database$/],
])('an object that is %s', (_, outcome, status, message) => {
  expect(healthOf(objectAfter(outcome))).toEqual({ status, message: expect.stringMatching(message) })
})

test.each([
  ['without a status', { kind: 'Org', metadata: { name: 'a', generation: 1 } }],
  ['with a status of another', { kind: 'Org', metadata: { name: 'a', generation: 1 }, status: { conditions: [] } }],
  ['changed since it was read', objectAfter({ issues: [], found: [], applied: true }, 4)],
])('an object %s is awaited', (_, object) => {
  expect(healthOf(object).status).toBe('Progressing')
})

test.each([
  ['True', 'Healthy'],
  ['False', 'Degraded'],
] as const)('a TokenGrant whose condition Accepted is %s is %s', (status, health) => {
  const verdict = { status, reason: 'Reason', message: 'why' }
  const written = statusToWrite(undefined, verdict, 2, new Date(), 'Accepted')
  const object = { kind: 'TokenGrant', metadata: { name: 'cart', generation: 2 }, status: written ?? {} }
  expect(healthOf(object)).toEqual({ status: health, message: 'why' })
  expect(healthOf({ ...object, metadata: { name: 'cart', generation: 3 } }).status).toBe('Progressing')
})
