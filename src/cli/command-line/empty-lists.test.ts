import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commands } from '#cli/commands.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { application, peopleInDatabase, registrationUrl } from '#testing/stories/story-documents.ts'
import { type CommandDescription, describeCommand } from './command-line.ts'

const form = registrationUrl('/join', { workflowName: 'join', invitationURL: 'https://portal.example.com/join' })
const others = `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: join }
spec: { tasks: [{ taskType: provision, target: people, sync: true, attributes: [uid, mail] }] }
---
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: mail }
spec:
  className: notifiers.Smtp
  params: [{ name: host, value: 127.0.0.1 }, { name: from, value: gatehouse@example.com }]`

/** A configuration and a database without anything. */
async function installation(): Promise<{ readonly config: string; readonly data: string }> {
  const [config, data] = [temporaryFolder(), temporaryFolder()]
  writeFileSync(join(config, 'all.yaml'), [peopleInDatabase, others, application('join', [form])].join('\n---\n'))
  const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger })
  await storage.ready()
  await storage.close()
  return { config, data }
}

const needsConfig = ['user invitations', 'user list']
/** Lists of one thing, and its name. */
const listsOf: Readonly<Record<string, string>> = { 'reconcile links': 'chat' }
const lists = [
  'audit export',
  'audit tail',
  'keys list',
  'mail list',
  'reconcile list',
  'scim log',
  'scim token list',
  'workflow list',
  ...needsConfig,
  ...Object.keys(listsOf),
]
/** Needs a plan, without which there is no list: `reconcile.test.ts`. */
const ofPlan = 'reconcile rows'

test.each(lists)('gatehouse %s says on standard error that there is nothing', async (name) => {
  const { config, data } = await installation()
  const of = listsOf[name]
  const args = [
    ...name.split(' '),
    ...(of === undefined ? [] : [of]),
    '--data',
    data,
    ...(needsConfig.includes(name) ? ['--config', config] : []),
  ]
  const stderr = expect.stringMatching(/^There are no [^\n]+\.\n$/)
  expect(await runCommand(args)).toEqual({ code: 0, stdout: '', stderr })
  expect(await runCommand([...args, '--output', 'json'])).toEqual({ code: 0, stdout: '[]\n', stderr })
})

test('these are all commands that print lists', async () => {
  const found: string[] = []
  const look = ({ name, about, actions }: CommandDescription): void => {
    const isList = /^(?:List|Show the keys|Print (?:all|the latest)) /.test(about)
    if (actions.length === 0 && isList) found.push(name)
    actions.forEach(look)
  }
  for (const command of Object.values(commands)) look(await describeCommand(await command.load()))
  expect(found.toSorted()).toEqual([...lists, ofPlan].toSorted())
})
