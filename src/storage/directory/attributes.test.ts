import fc from 'fast-check'
import { expect, test } from 'vitest'
import { attributeChange } from '#storage/directory/attributes.ts'

const values: fc.Arbitrary<string[]> = fc.array(fc.constantFrom('a', 'b', 'c', 'A'), { maxLength: 4 })

test('applying the returned changes to the stored values gives the wanted values', () => {
  fc.assert(
    fc.property(values, values, (stored, wanted) => {
      const change = attributeChange('x', stored, wanted, false)
      if (change === undefined) {
        expect(wanted).toEqual(stored)
        return
      }
      expect(change.values).toEqual(wanted)
      expect(change.changes.length).toBeGreaterThan(0)
      let result = [...stored]
      for (const { action, value = '' } of change.changes) {
        if (action === 'delete') result.splice(result.indexOf(value), 1)
        if (action === 'add') result.push(value)
        if (action === 'replace' && stored.length === 1) result = [value]
      }
      expect(result.toSorted()).toEqual(wanted.toSorted())
    }),
  )
})

test('addOnly removes no value and repeats none', () => {
  fc.assert(
    fc.property(values, values, (stored, wanted) => {
      const result = attributeChange('x', stored, wanted, true)?.values ?? stored
      expect(result.slice(0, stored.length)).toEqual(stored)
      for (const value of wanted) expect(result).toContain(value)
      expect(attributeChange('x', result, wanted, true)).toBeUndefined()
    }),
  )
})
