import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { loadText } from '#testing/modules/check-text.ts'

const text = `
apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database }
---
apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: chat }
spec:
  className: targets.Scim
  params: { url: "#[CHAT_URL:https://chat.test]", token: "#[CHAT_TOKEN:none]" }
  targetAttributes: [{ name: mail, source: mail, sourceType: user }]
---
apiVersion: gatehouse.dev/v1
kind: Workflow
metadata: { name: join }
spec: { description: Joins, tasks: [{ taskType: provision, target: chat, sync: true }] }
---
apiVersion: gatehouse.dev/v1
kind: Workflow
metadata: { name: other }
spec: { tasks: [{ taskType: provision, target: chat, sync: true }] }
---
apiVersion: gatehouse.dev/v1
kind: Reconciliation
metadata: { name: chat }
spec:
  description: Staff has the chat
  source: { target: people }
  target: chat
  missing: create
  workflow: join
  limits: { percent: 5 }
`

function definitionOf(changed: string, environment: Readonly<Record<string, string>> = {}): string {
  const { configuration, issues } = loadText(changed, catalog, { environment })
  const definition = configuration?.reconciliations.get('chat')?.definition
  if (definition === undefined) throw new Error(JSON.stringify(issues))
  return definition
}

const withText = (from: string, to: string): string => {
  expect(text).toContain(from)
  return text.replace(from, to)
}

test.each([
  ['the reconciliation', 'missing: create', 'missing: create\n  groups: [staff]'],
  [
    'its source',
    '{ name: people }\nspec: { className: targets.Database }',
    '{ name: people }\nspec: { className: targets.Database, params: { directory: other } }',
  ],
  ['the mapping of its target', 'source: mail, sourceType', 'source: email, sourceType'],
  [
    'its workflow',
    'tasks: [{ taskType: provision, target: chat, sync: true }] }\n---\napiVersion: gatehouse.dev/v1\nkind: Workflow',
    'tasks: [{ taskType: delete, target: chat }] }\n---\napiVersion: gatehouse.dev/v1\nkind: Workflow',
  ],
])('a change of %s is another definition', (_, from, to) => {
  expect(definitionOf(withText(from, to))).not.toBe(definitionOf(text))
})

test.each([
  ['of texts for people', 'Staff has', 'Everyone has'],
  ['of texts of a workflow', 'description: Joins, ', ''],
  ['of limits', 'percent: 5', 'percent: 6'],
  [
    'of another workflow',
    '{ name: other }\nspec: { tasks: [{ taskType: provision, target: chat, sync: true }] }',
    '{ name: other }\nspec: { tasks: [{ taskType: delete, target: chat }] }',
  ],
  ['of the order of keys', 'source: mail, sourceType: user', 'sourceType: user, source: mail'],
])('a change %s is not', (_, from, to) => {
  expect(definitionOf(withText(from, to))).toBe(definitionOf(text))
})

test('another address of the target counts, and another secret does not', () => {
  expect(definitionOf(text, { CHAT_URL: 'https://other.test' })).not.toBe(definitionOf(text))
  expect(definitionOf(text, { CHAT_TOKEN: 'hunter2' })).toBe(definitionOf(text))
  const literal = (token: string) => withText('#[CHAT_TOKEN:none]', token)
  expect(definitionOf(literal('hunter2'))).toBe(definitionOf(literal('hunter3')))
})

test('of a directory, only the targets whose users are in it count', () => {
  const ofDirectory = withText('{ target: people }', '{ directory: "ou=people,o=Tremolo" }')
  const more = (inDirectory: boolean) => `${ofDirectory}---
apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: acme-users }
spec: { className: targets.Database, inDirectory: ${inDirectory} }
`
  expect(definitionOf(more(false))).toBe(definitionOf(ofDirectory))
  expect(definitionOf(more(true))).not.toBe(definitionOf(ofDirectory))
})
