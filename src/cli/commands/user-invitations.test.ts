import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { application, peopleInDatabase, registrationUrl } from '#testing/stories/story-documents.ts'
import { userCommandReading } from './user.ts'

const form = (uri: string, workflowName: string): object =>
  registrationUrl(uri, { workflowName, invitationURL: 'https://portal.example.com/join' })

const workflow = (name: string): string => `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ${name} }
spec: { tasks: [{ taskType: provision, target: people, sync: true, attributes: [uid, mail] }] }`

const notifier = `apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: mail }
spec:
  className: notifiers.Smtp
  params: [{ name: host, value: 127.0.0.1 }, { name: from, value: gatehouse@example.com }]`

async function setUp(...forms: object[]) {
  const folder = temporaryFolder()
  const config = join(folder, 'config')
  mkdirSync(config)
  const documents = [peopleInDatabase, notifier, workflow('join'), workflow('leave'), application('register', forms)]
  writeFileSync(join(config, 'register.yaml'), documents.join('\n---\n'))
  const run = async (...args: string[]) => {
    const output: string[] = []
    const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void output.push(line) }
    const command = userCommandReading(Readable.from([]))
    const code = await command([...args, '--config', config, '--data', join(folder, 'data')], io)
    return { code, output: output.join('\n') }
  }
  // The first user creates the database.
  expect((await run('add', 'grace', '--no-password')).code).toBe(0)
  return run
}

test('a form at two URLs of an application is one form', async () => {
  const run = await setUp(form('/register', 'join'), form('/inviting', 'join'))
  expect(await run('invite', 'ada@example.com')).toMatchObject({ code: 0 })
  expect((await run('invitations')).output).toContain('open  ada@example.com')
})

test('several forms of an application require a choice', async () => {
  const run = await setUp(form('/register', 'join'), form('/leaving', 'leave'))
  const refused = await run('invite', 'ada@example.com', '--application', 'register')
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('--application is required') })
})
