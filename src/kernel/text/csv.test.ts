import fc from 'fast-check'
import { expect, test } from 'vitest'
import { csvCell } from './csv.ts'

test.each([
  ['=1+1', "'=1+1"],
  ['+cmd', "'+cmd"],
  ['-2+3', "'-2+3"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', `"'\t=1"`],
  ['\r=1', `"'\r=1"`],
  ['  =1', "'  =1"],
  ['\u200b=1', "'\u200b=1"],
  ['＝1', "'＝1"],
  ['=HYPERLINK("http://x";"y")', `"'=HYPERLINK(""http://x"";""y"")"`],
  ['-12.5', '-12.5'],
  ['+49', '+49'],
  ['a=b', 'a=b'],
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
  ['two\nlines', '"two\nlines"'],
  [' x ', '" x "'],
  ['', ''],
])('D21: a cell of %j is %j', (value, expected) => {
  expect(csvCell(value)).toBe(expected)
})

test('D21: no cell starts like a formula, and each reads back as its value', () => {
  const texts = fc.string({ unit: fc.constantFrom(...'=+-@\t\r\n"\',; a1'), maxLength: 8 })
  fc.assert(
    fc.property(texts, (value) => {
      const written = csvCell(value)
      const quoted = written.startsWith('"')
      const read = quoted ? written.slice(1, -1).replaceAll('""', '"') : written
      expect(quoted || !/[",\r\n]/.test(written)).toBe(true)
      expect(/^\s*[=+\-@]/.test(read) && !/^[+-]\d+$/.test(read)).toBe(false)
      expect([value, `'${value}`]).toContain(read)
    }),
  )
})
