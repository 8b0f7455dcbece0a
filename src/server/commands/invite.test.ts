import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { userCommandReading } from '#server/commands/user.ts'
import { temporaryFolder } from '#testing/databases.ts'

const form = (uri: string, workflow: string): string => `
    - hosts: [portal.example.com]
      uri: ${uri}
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.Register
          params:
            frontPage.title: Register
            frontPage.text: Tell us who you are.
            homeURL: /
            logoutURL: /logout
            uidAttributeName: uid
            workflowName: ${workflow}
            attributeNames: [uid, mail]
            uid.displayName: Login
            mail.displayName: Mail address
            invitationURL: https://portal.example.com/join`

const rest = `apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: people }
spec: { className: directory.Database, suffix: "ou=people,o=Tremolo" }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database }
---
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: mail }
spec:
  className: notifiers.Smtp
  params: [{ name: host, value: 127.0.0.1 }, { name: from, value: gatehouse@example.com }]
---
${['join', 'leave']
  .map(
    (name) => `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ${name} }
spec: { tasks: [{ taskType: provision, target: people, sync: true, attributes: [uid, mail] }] }
`,
  )
  .join('---\n')}---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: register }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:`

async function setUp(...urls: string[]) {
  const folder = temporaryFolder()
  const config = join(folder, 'config')
  mkdirSync(config)
  writeFileSync(join(config, 'register.yaml'), rest + urls.join(''))
  const run = async (...args: string[]) => {
    const output: string[] = []
    const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void output.push(line) }
    const command = userCommandReading(Readable.from([]))
    const code = await command([...args, '--config', config, '--data', join(folder, 'data')], io)
    return { code, output: output.join('\n') }
  }
  // The first person makes the database.
  expect(await run('add', 'grace', '--no-password')).toEqual({ code: 0, output: '' })
  return run
}

test('a form that stands at two URLs of an application is one form', async () => {
  const run = await setUp(form('/register', 'join'), form('/inviting', 'join'))
  expect(await run('invite', 'ada@example.com')).toMatchObject({ code: 0 })
  expect((await run('invitations')).output).toContain('open  ada@example.com')
})

test('of several forms of an application none is guessed', async () => {
  const run = await setUp(form('/register', 'join'), form('/leaving', 'leave'))
  const refused = await run('invite', 'ada@example.com', '--application', 'register')
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('--application is needed') })
})
