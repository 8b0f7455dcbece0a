import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { buildConfiguration } from '#config/load/load.ts'
import { causeText, summarize } from '#config/load/set-aside.ts'
import { readDirectory } from '#config/sources/folder-documents.ts'

const examples = [
  'approvals',
  'call-workflow',
  'ldap-target',
  'own-issuer',
  'portal',
  'scim-target',
  'token-service',
  'webhook-target',
]

/** Values that parsers take apart, and that change their case. */
const values = {
  MYPW: 'S3cr3t-V4lue.from-env',
  WEBHOOK: 'https://Zq7x:Wv9k@Kp3m.corp.test/a?b=Tr5w',
  LISTED: 'Zq7x, Wv9k|Kp3m,(Tr5w=*)',
  PIN: 'Zq7x',
}
const parts = /s3cr3t|v4lue|zq7x|wv9k|kp3m|tr5w/i

/** A value after its key, or one of a list. */
const scalar = /^(\s*(?:- )*(?:[\w.-]+: +|- +))(?!['"]?#\[)[^\s{[|>&*#][^{}]*$/
const everyLine = 8

/** The text with the placeholder instead of every eighth value; names of kinds stay. */
function replaced(text: string, placeholder: string, round: number): string {
  let count = 0
  return text
    .split('\n')
    .map((line) => {
      const start = /^\s*(?:kind|apiVersion):/.test(line) ? undefined : scalar.exec(line)?.[1]
      return start !== undefined && count++ % everyLine === round ? `${start}'${placeholder}'` : line
    })
    .join('\n')
}

test.each(examples)('no message about %s has a value of the environment, wherever it is used', async (example) => {
  const folder = `examples/${example}`
  const sources = await readDirectory(folder)
  let messages = 0
  for (let round = 0; round < everyLine; round++) {
    // Each place gets two of the values.
    for (const name of Object.keys(values).filter((_, i) => i % 2 === round % 2)) {
      const files = sources.files.map((file) => ({ ...file, text: replaced(file.text, `#[${name}]`, round) }))
      const result = buildConfiguration(
        { ...sources, files },
        { folder, catalog, environment: values, strictSecrets: true },
      )
      const shown = [
        ...result.issues.map(formatIssue),
        ...summarize(result),
        ...result.found.flatMap(({ cause }) => [cause?.object ?? '', causeText(cause)]),
        ...(result.configuration?.setAside?.map(({ reason }) => reason) ?? []),
      ]
      messages += shown.length
      expect(shown.filter((line) => parts.test(line))).toEqual([])
    }
  }
  expect(messages).toBeGreaterThan(0)
})
