import { describe, expect, test } from 'vitest'
import { createRequestMap, isAsynchronous } from './workflows.ts'

describe('createRequestMap', () => {
  test('keeps what the caller passed', () => {
    expect([...createRequestMap({ groupname: 'admins', removegroup: 'false' })]).toEqual([
      ['groupname', 'admins'],
      ['removegroup', 'false'],
    ])
  })

  test.each([
    'APPROVAL_IMMEDIATE_ACTION',
    'APPROVAL.ID',
    'approval_reason',
    'UNISON.PROV.ATTRS',
    'unison.sendToAll',
    'UNISON_EXEC_TYPE',
    'WORKFLOW',
    'WORKFLOW_ID',
    'workflow.id',
    'com.tremolosecurity.unison.provisioning.SetPassword',
    'TREMOLO_USER_ID',
    'constructor',
  ])('rejects the engine key %s', (key) => {
    expect(() => createRequestMap({ [key]: 'true' })).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
  })

  test("rejects a key that reaches JavaScript's own properties", () => {
    const params = JSON.parse('{"__proto__": "x"}') as Record<string, string>
    expect(() => createRequestMap(params)).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
  })

  test('a call may set how it is executed, and no other engine key', () => {
    expect(createRequestMap({ 'UNISON.EXEC.TYPE': 'UNISON.EXEC.SYNC' }).size).toBe(1)
    expect(createRequestMap({ 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' }).size).toBe(1)
    expect(() => createRequestMap({ 'UNISON.EXEC.TYPE': 'later' })).toThrow(
      expect.objectContaining({ code: 'BAD_REQUEST' }),
    )
  })

  test('the call itself decides whether it is asynchronous, or else its parameter', () => {
    const params = { 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' }
    expect(isAsynchronous({ params: {} })).toBe(false)
    expect(isAsynchronous({ params })).toBe(true)
    expect(isAsynchronous({ params, asynchronous: false })).toBe(false)
    expect(isAsynchronous({ params: {}, asynchronous: true })).toBe(true)
  })

  test('the number of keys is limited, and values are text', () => {
    const many = Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`k${i}`, 'v']))
    expect(() => createRequestMap(many)).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
    const wrong = { key: { toString: 'x' } } as unknown as Record<string, string>
    expect(() => createRequestMap(wrong)).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
  })
})
