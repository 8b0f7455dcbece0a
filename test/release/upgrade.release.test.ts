import { existsSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { expect, inject, test } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { run } from '#testing/release/run-program.ts'
import { serving } from '#testing/release/served.ts'
import { architecture } from '#testing/release/unpacked-image.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'

const { folder: released, scratch } = inject('release')

/** The folder of the last release's artifacts. Before the first release, what this commit publishes stands for it. */
const last = process.env['GATEHOUSE_LAST_RELEASE'] ?? released

test('this release serves the data of the last one', { timeout: 360_000 }, async () => {
  const place = join(scratch, 'upgrade')
  const unpack = async (from: string, name: string): Promise<string> => {
    const [archive] = globSync(`gatehouse-*-linux-${architecture}.tar.gz`, { cwd: from })
    if (archive === undefined) throw new Error(`${from} has no archive for ${architecture}`)
    const folder = join(place, name)
    mkdirSync(folder, { recursive: true })
    await run('tar', ['-C', folder, '--strip-components=1', '-xzf', join(from, archive)])
    return folder
  }
  const [before, after] = [await unpack(last, 'before'), await unpack(released, 'after')]
  const data = join(place, 'data')
  const url = `http://127.0.0.1:${await freePort()}`
  const env = { PATH: process.env['PATH'], HOME: place, GATEHOUSE_URL: url }
  const gatehouse = (folder: string, ...args: readonly string[]): Promise<string> =>
    run(join(folder, 'bin/gatehouse'), args, place, env)
  const serve = (folder: string, use: () => Promise<void>): Promise<void> => {
    const listen = ['--listen', new URL(url).host, '--metrics', 'off']
    const args = ['serve', '--config', join(folder, 'examples/quickstart'), '--data', data, ...listen]
    return serving({ program: join(folder, 'bin/gatehouse'), args, cwd: place, env, url }, use)
  }
  const scim = async (folder: string, path: string, body?: object): Promise<unknown> => {
    const mint = ['--issuer', `${url}/dev-issuer`, '--subject', 'idp', '--claim', 'role=crm']
    const token = (await gatehouse(folder, 'token', 'mint', '--data', data, ...mint)).trim()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' }
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    return (await fetch(`${url}/scim/people/Users${path}`, init)).json()
  }
  const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']

  let ada: PortalPerson | undefined
  let created: unknown
  await serve(before, async () => {
    ada = await PortalPerson.logIn({ url }, 'ada')
    created = await scim(before, '', { schemas, userName: 'mary', name: { givenName: 'Mary', familyName: 'Ward' } })
    expect(created).toMatchObject({ userName: 'mary' })
  })
  expect(existsSync(join(data, 'gatehouse.db'))).toBe(true)
  await gatehouse(after, 'migrate', '--dry-run', '--data', data)
  await gatehouse(after, 'backup', join(place, 'backup.db'), '--data', data)
  await serve(after, async () => {
    expect((await ada?.get('/main/user'))?.json).toMatchObject({ uid: 'ada' })
    expect(await scim(after, '?filter=userName+eq+%22mary%22')).toMatchObject({ totalResults: 1, Resources: [created] })
  })
  await gatehouse(after, 'audit', 'verify', '--data', data)
  const version = (folder: string): string => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version
  console.log(
    `from ${version(before)} to ${version(after)}${last === released ? ', which stands for the last one' : ''}`,
  )
})
