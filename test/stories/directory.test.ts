import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { ScimClient, startScimServer } from '#testing/scim/scim-client.ts'
import { directoryParameters, scimConfiguration, throughDirectory } from '#testing/scim/scim-lookups.ts'

const embedded = `apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: callers }
spec:
  className: directory.Database
  suffix: ou=callers,o=Tremolo
  mapping: { nick: displayName }
`

/** The SCIM example, for callers who are in the embedded directory and in its group `clients`. */
async function configuration(): Promise<string> {
  const { files } = await throughDirectory.open()
  const folder = await scimConfiguration({
    parameters: directoryParameters,
    files: { ...files, 'callers.yaml': embedded },
  })
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await edit(join(folder, 'authentication.yaml'), [
    ['linkToDirectory: "false"', 'linkToDirectory: "true"'],
    ['lookupFilter: ""', `lookupFilter: "(&(uid=\${sub})(nick=*))"`],
  ])
  await edit(join(folder, 'clients.yaml'), [
    [
      '- scope: dn\n          constraint: sub=idp,ou=api,o=Tremolo',
      '- scope: group\n          constraint: cn=clients,ou=groups,ou=callers,o=Tremolo',
    ],
  ])
  return folder
}

async function edit(file: string, changes: readonly (readonly [string, string])[]): Promise<void> {
  let text = await readFile(file, 'utf8')
  for (const [from, to] of changes) {
    expect(text).toContain(from)
    text = text.replaceAll(from, () => to)
  }
  await writeFile(file, text)
}

test('users of the embedded directory are linked, and its groups decide', async () => {
  const config = await configuration()
  const data = temporaryFolder()
  const user = (input: string, ...args: string[]) =>
    runCommand(['user', ...args, '--config', config, '--data', data], input)
  const named = ['--attribute', 'displayName=x']
  expect(await user('a good password\n', 'add', 'idp', '--group', 'clients', ...named)).toEqual({
    code: 0,
    stdout: 'Added "idp" to the directory "callers", in the group clients. The user can log in with this password.\n',
    stderr: '',
  })
  expect((await user('a good password\n', 'add', 'guest', ...named)).code).toBe(0)
  expect((await user('', 'add', 'nameless', '--group', 'clients', '--no-password')).code).toBe(0)

  const server = await startScimServer(undefined, data, config)
  onTestFinished(async () => void (await server.process.stop()))
  const status = async (subject: string) => {
    const token = await server.process.token('--subject', subject)
    return (await new ScimClient(`${server.process.url}/scim/v2`, token).get('/Users')).status
  }
  expect(await status('idp')).toBe(200)
  expect(await status('guest')).toBe(403)
  expect(await status('nameless')).toBe(403)
  expect(await status('*')).toBe(403)
  expect((await user('', 'add', 'late', '--group', 'clients', '--no-password', ...named)).code).toBe(0)
  expect(await status('late')).toBe(200)
  const listed = await user('', 'list')
  expect(listed.stdout).toContain('idp  password  uid=idp,ou=callers,o=Tremolo')
  expect((await user('', 'remove', 'late')).code).toBe(0)
})
