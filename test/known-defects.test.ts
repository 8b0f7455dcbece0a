import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** What was found wrong with the predecessor, by the numbers that titles of tests start with: `D7: …`. None may come back. */
const defects: Readonly<Record<string, string>> = {
  D1: 'a registration sets attributes that are not in the form',
  D2: 'a registration is made about somebody else than the caller',
  D3: 'a caller names the requester, groups and parameters of the engine',
  D4: 'approvers are shown passwords',
  D5: 'validation fails at values that are missing, or is left out',
  D6: 'a profile is changed although that is not allowed',
  D7: 'a workflow that is not listed is asked for',
  D8: 'a value becomes a part of a filter',
  D9: 'escalations are counted from the start of the server',
  D10: 'a decision is taken twice, or lost',
  D11: 'somebody approves what they asked for',
  D12: 'a page of another site makes changes',
  D13: 'the parameters of a request are used by somebody else, or changed',
  D14: 'ids of approvals are guessed; lists of approvals cost a search each',
  D15: 'a registration tells who has an account',
  D16: 'the lists of a form lay a directory open',
  D17: 'a human check is not checked; its secret is logged',
  D18: 'a browser executes what the configuration says',
  D19: 'tokens in addresses, redirects to anywhere, tokens for others are taken',
  D20: 'a value becomes a part of a command; reading makes tokens',
  D21: 'a report is unbounded, renders what is posted, or tells of what may not be seen',
  D22: 'parameters of requests are shown, or filled in a second time',
  D23: 'old approvals are never reminded of; nobody to ask goes unnoticed',
  D24: 'clients are told what steers the server; patterns run for ever',
  D25: 'a rule matches more than it says',
}

/** The injected sidecar's tests have numbers of their own. */
const otherNumbers = 'src/modules/filters/sts-injector/'

/** Tables as well: `test.each([...])('D8: …')`. */
const titles = /(?:^\s*(?:test|it|describe)\b[.\w]*|\))\(\s*(['"`])((?:D\d+, )*D\d+): \S/gm

const numbersIn = (text: string): string[] =>
  Array.from(text.matchAll(titles), ([, , numbers = '']) => numbers.split(', ')).flat()

test('every known defect has a test that is named after it', () => {
  const files = globSync('{src,test}/**/*.test.ts').filter((file) => !file.startsWith(otherNumbers))
  const tested = new Set(files.flatMap((file) => numbersIn(readFileSync(file, 'utf8'))))
  expect(Object.keys(defects).filter((number) => !tested.has(number))).toEqual([])
  expect([...tested].filter((number) => defects[number] === undefined)).toEqual([])
})

test('only titles count, those of tables too', () => {
  expect(numbersIn("  test('D7: no', f)\ndescribe('D1, D2: no', f)\n])('D8: no %s', f)")).toEqual([
    'D7',
    'D1',
    'D2',
    'D8',
  ])
  expect(numbersIn("// test('D7: no')\nexpect('D7: no')\ntest('no D7: no')\ntest('D7:')")).toEqual([])
})
