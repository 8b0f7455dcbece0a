import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Defects of OpenUnison. The title of each regression test starts with the number: `D7: …`. */
const defects: Readonly<Record<string, string>> = {
  D1: 'a registration sets attributes that are not in the form',
  D2: 'a registration is about another user than the caller',
  D3: 'a caller names the requester, groups and parameters of the engine',
  D4: 'approvers are shown passwords',
  D5: 'validation fails at values that are missing, or is left out',
  D6: 'a profile is changed although that is not allowed',
  D7: 'a user requests a workflow that is not listed',
  D8: 'a value becomes a part of a filter',
  D9: 'escalations are counted from the start of the server',
  D10: 'a decision counts twice, or is lost',
  D11: 'a requester approves their own request',
  D12: 'a page of another site makes changes',
  D13: 'another user reads or changes the parameters of a request',
  D14: 'ids of approvals are guessed; lists of approvals cost a search each',
  D15: 'a registration reveals who has an account',
  D16: 'the lists of a form expose the directory',
  D17: 'a human check is not checked; its secret is logged',
  D18: 'a browser executes texts of the configuration',
  D19: 'tokens in addresses, redirects to anywhere, tokens for other audiences are accepted',
  D20: 'a value becomes a part of a command; reading makes tokens',
  D21: 'a report is unbounded, renders what is posted, or shows hidden rows',
  D22: 'parameters of requests are shown, or filled in a second time',
  D23: 'old approvals get no reminder; an approval without approvers goes unnoticed',
  D24: 'clients see server settings; patterns run forever',
  D25: 'a rule matches more than it says',
}

/** The injected sidecar's tests have numbers of their own. */
const otherNumbers = 'src/features/sts/injector/'

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
