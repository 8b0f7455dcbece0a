import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { issuerParameters, trustParameters, unusedIssuerParameters } from '#config/build/issuer.ts'

const guide = readFileSync('docs/guides/own-issuer.md', 'utf8')

/** The names in backticks in the first column of a table. */
function rowsOf(heading: string): string[] {
  const table = guide.slice(guide.indexOf(heading)).split('\n\n', 1)[0] ?? ''
  const rows = table.split('\n').slice(2)
  return rows.flatMap((row) => Array.from((row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g), ([, name = '']) => name))
}

test('the guide has every parameter of an issuer and of a trust', () => {
  expect(rowsOf('| Parameter of the `idp`').sort()).toEqual(Object.keys(issuerParameters).sort())
  expect(rowsOf('| Parameter of a trust').sort()).toEqual(Object.keys(trustParameters).sort())
})

test('an unused parameter is still a parameter, so that existing YAML loads', () => {
  for (const name of unusedIssuerParameters) expect(Object.keys(issuerParameters)).toContain(name)
})
