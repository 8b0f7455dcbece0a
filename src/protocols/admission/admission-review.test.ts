import fc from 'fast-check'
import { jsonpatch } from 'json-p3'
import { expect, test } from 'vitest'
import { diffToPatch } from '#protocols/admission/admission-review.ts'

const value = fc.jsonValue({ maxDepth: 4 })

/** The receiver's object after applying the patch; the library is not ours. */
function applied(patch: ReturnType<typeof diffToPatch>, before: unknown): unknown {
  const wire: unknown = JSON.parse(JSON.stringify(patch))
  return jsonpatch.apply(wire as Parameters<typeof jsonpatch.apply>[0], JSON.parse(JSON.stringify(before)))
}

const withoutForbidden = (json: unknown): boolean => !JSON.stringify(json).includes('__proto__')

test('the patch of any two values turns the one into the other', () => {
  fc.assert(
    fc.property(value.filter(withoutForbidden), value.filter(withoutForbidden), (before, after) => {
      const patch = diffToPatch(before, after)
      expect(applied(patch, before)).toEqual(JSON.parse(JSON.stringify(after)))
      expect(patch.every(({ op }) => op === 'add' || op === 'replace')).toBe(true)
    }),
  )
})

test('members inserted anywhere into a list of named ones are added, and nothing else changes', () => {
  const named = fc.uniqueArray(fc.record({ name: fc.string(), value: fc.integer() }), { selector: ({ name }) => name })
  fc.assert(
    fc.property(named, fc.array(fc.boolean()), (members, kept) => {
      const before = members.filter((_, position) => kept[position] === true)
      const patch = diffToPatch({ list: before }, { list: members })
      expect(applied(patch, { list: before })).toEqual({ list: members })
      expect(patch.map(({ op }) => op)).toEqual(members.slice(before.length).map(() => 'add'))
    }),
  )
})

test('equal values need no patch', () => {
  fc.assert(
    fc.property(value, (json) => {
      expect(diffToPatch(json, structuredClone(json))).toEqual([])
    }),
  )
})

test.each([
  ['a member of an object', { a: 1 }, { a: 1, 'x/y~z': 2 }, [{ op: 'add', path: '/x~1y~0z', value: 2 }]],
  ['a null in the place of a list', { a: null }, { a: [1] }, [{ op: 'replace', path: '/a', value: [1] }]],
  [
    'a mount of the same volume at another path',
    [{ name: 'v', mountPath: '/a' }],
    [
      { name: 'v', mountPath: '/b' },
      { name: 'v', mountPath: '/a' },
    ],
    [{ op: 'add', path: '/0', value: { name: 'v', mountPath: '/b' } }],
  ],
  [
    'a change deep inside',
    { c: [{ name: 'a', env: [] }] },
    { c: [{ name: 'a', env: [1] }] },
    [{ op: 'add', path: '/c/0/env/0', value: 1 }],
  ],
  ['something removed', { a: { b: 1, c: 2 } }, { a: { c: 2 } }, [{ op: 'replace', path: '/a', value: { c: 2 } }]],
])('%s', (_, before, after, patch) => {
  expect(diffToPatch(before, after)).toEqual(patch)
})
