import { expect, test } from 'vitest'
import { explainCommand } from '#server/commands/explain.ts'

async function explain(...args: string[]): Promise<string> {
  const lines: string[] = []
  const io = { stdout: (line: string) => void lines.push(line), stderr: (line: string) => void lines.push(line) }
  await explainCommand(['--config', 'examples/quickstart', ...args], io)
  return lines.join('\n')
}

const people = 'http://127.0.0.1:8080/scim/people/Users'
const note = /^note .*--as dn=NAME$/m

test('a rule about names that failed for a name nobody gave says how to give it', async () => {
  expect(await explain('GET', people, '--as', 'sub=idp')).toMatch(note)
  expect(await explain('GET', people, '--as', 'dn=sub=eve,ou=api,o=Tremolo')).not.toMatch(note)
  expect(await explain('GET', people, '--as', 'dn=sub=idp,ou=api,o=Tremolo')).toMatch(/^decision +allowed$/m)
  expect(await explain('GET', 'http://127.0.0.1:8080/scim/crm/Users', '--as', 'sub=eve')).not.toMatch(note)
})

test('an unknown path tells the paths of its host, an unknown host the hosts', async () => {
  expect(await explain('GET', 'http://127.0.0.1:8080/scim')).toContain(
    'paths that are served on 127.0.0.1: /dev-issuer, /scim/crm, /scim/people',
  )
  expect(await explain('GET', 'http://elsewhere.test/scim/crm')).toContain(
    'hosts that are served: 127.0.0.1, localhost',
  )
})
