import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { javaMembers } from '#openunison/scripts/runtime/java-global.ts'
import { givenTypes, returnedType, type ServedType, servedTypes } from './java-inference.ts'

const guide = readFileSync(new URL('../../../docs/guides/legacy-scripts.md', import.meta.url), 'utf8')
const all = [...servedTypes, ...givenTypes]

const row = ({ name, constructs, statics, methods }: ServedType): string => {
  const members = [...statics, ...methods].map((member) => `\`${member}\``).join(' ')
  return `| \`${name}\` | ${constructs ? 'yes' : ''} | ${members} |`
}

test('the guide lists exactly the supported types and members', () => {
  const rows = guide.split('\n').filter((line) => /^\| `[\w.$]+` \|/.test(line))
  expect(rows).toEqual(all.map(row))
  for (const member of javaMembers) expect(guide).toContain(`\`${member}\``)
})

test('every type that OpenUnison’s scripts are known to use is supported', () => {
  const known = [
    ...['HashMap', 'HashSet', 'ArrayList', 'Base64', 'UUID'].map((name) => `java.util.${name}`),
    ...['System', 'String', 'StringBuffer', 'Integer'].map((name) => `java.lang.${name}`),
    ...['URI', 'URLEncoder', 'http.HttpClient', 'http.HttpRequest', 'http.HttpResponse'].map(
      (name) => `java.net.${name}`,
    ),
    ...['User', 'Group', 'ProvisioningUtil'].map((name) => `com.tremolosecurity.provisioning.core.${name}`),
    'org.apache.log4j.Logger',
    'com.tremolosecurity.saml.Attribute',
    'com.tremolosecurity.server.GlobalEntries',
    'com.tremolosecurity.util.JSUtils',
    'net.sourceforge.myvd.types.Filter',
  ]
  const names = servedTypes.map(({ name }) => name)
  expect(known.filter((name) => !names.includes(name))).toEqual([])
})

test('the result type of each member exists', () => {
  const names = all.map(({ name }) => name)
  const given = all.flatMap(({ name, statics, methods }) =>
    [...statics, ...methods].flatMap((member) => returnedType(name, member) ?? []),
  )
  expect(given.length).toBeGreaterThan(50)
  expect(given.filter((name) => !names.includes(name))).toEqual([])
})
