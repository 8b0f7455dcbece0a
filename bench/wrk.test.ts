import fengari from 'fengari'
import { expect, test } from 'vitest'
import { parseWrk, wrkScript } from './wrk.ts'

/** Runs the script in Lua, then an expression. */
function inLua(script: string, expression: string): string {
  const { lua, lauxlib, lualib, to_luastring } = fengari
  const state = lauxlib.luaL_newstate()
  lualib.luaL_openlibs(state)
  const failed = lauxlib.luaL_dostring(state, to_luastring(`${script}\nreturn ${expression}`))
  const result = lua.lua_tojsstring(state, -1)
  if (failed) throw new Error(result)
  return result
}

const get = 'GET /user HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
const post = `POST /user HTTP/1.1\r\nContent-Length: 17\r\n\r\n{"name":"a\\"b\\\\"}`

test('the script sends every byte of the requests, in order and again', () => {
  const script = wrkScript([get, post])
  expect(inLua(script, 'request() .. "|" .. request() .. "|" .. request()')).toBe(`${get}|${post}|${get}`)
})

const output = (figures: object): string =>
  `Running 1s test @ http://127.0.0.1:1/\nRequests/sec: 1.00\nfigures: ${JSON.stringify(figures)}\n`

test('the rate is that of the measured time, and latencies are in milliseconds', () => {
  const figures = { count: 3000, micros: 1_500_000, p50: 900, p99: 4200, refused: 0, broken: 0 }
  expect(parseWrk(output(figures))).toEqual({ count: 3000, perSecond: 2000, p50: 0.9, p99: 4.2 })
})

test.each([
  ['an error status', { refused: 2 }, '2 of 10 answers had an error status'],
  ['a broken connection', { broken: 1 }, '1 connections failed'],
  ['no answer', { count: 0 }, 'no request was answered'],
])('%s is an error', (_, difference, message) => {
  const figures = { count: 10, micros: 1_000_000, p50: 1, p99: 1, refused: 0, broken: 0, ...difference }
  expect(() => parseWrk(output(figures))).toThrow(message)
})

test('output without figures is shown', () => {
  expect(() => parseWrk('unable to connect')).toThrow('wrk printed no figures: unable to connect')
})
