import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { keysCommand } from '#server/commands/keys.ts'
import { stsCommand } from '#server/commands/sts.ts'
import { openStorage } from '#storage/open.ts'
import { temporaryFolder } from '#testing/databases.ts'

const target = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: k8s, namespace: openunison }
spec:
  className: targets.Kubernetes
  params:
    - { name: tokenFile, value: /nowhere/token }
    - { name: url, value: "https://127.0.0.1:1" }
`

const values = (folder: string) => `
sts:
  endpoints:
    - name: aws
      audience: sts.amazonaws.com
      path: /sts/aws
      azRules: [{ scope: filter, constraint: "(namespace=apps)" }]
      issuer: { host: issuer.invalid }
      algorithm: ES256
      clusters: [k8s]
      keys: { readBack: written }
      publish: [{ type: folder, folder: ${folder} }]
`

async function installation() {
  const [config, data] = [temporaryFolder(), temporaryFolder()]
  await mkdir(join(config, 'targets'))
  await writeFile(join(config, 'values.yaml'), values('site'))
  await writeFile(join(config, 'targets', 'k8s.yaml'), target)
  const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger })
  await storage.ready()
  await storage.close()
  return { config, data, both: ['--config', config, '--data', data] }
}

async function run(args: readonly string[], command = keysCommand) {
  const [out, errors] = [[] as string[], [] as string[]]
  const code = await command([...args], {
    stdout: (line) => void out.push(line),
    stderr: (line) => void errors.push(line),
  })
  return { code, out, errors }
}

describe('gatehouse keys', () => {
  test('publish makes the first key, and list tells it without its private part', async () => {
    const { data, both } = await installation()
    expect(await run(['list', '--data', data])).toMatchObject({
      code: 1,
      errors: ['gatehouse keys: there are no keys'],
    })
    const published = await run(['publish', ...both])
    expect(published).toMatchObject({ code: 0, errors: [] })
    expect(published.out[0]).toBe('aws')
    expect(published.out[1]).toMatch(/^ {2}active {3}[\w-]{43} ES256 {2}signs since \d{4}-/)
    const { keys } = JSON.parse(await readFile(join(data, 'site', 'certs'), 'utf8')) as { keys: { kid: string }[] }
    const { out } = await run(['list', '--data', data, '--json'])
    const told = JSON.parse(out[0] ?? '') as { keys: { kid: string; state: string }[] }
    expect(told.keys).toMatchObject([{ kid: keys[0]?.kid, state: 'active', given: false }])
    expect(out.join()).not.toContain('sealed')
  })

  test('rotate makes and publishes the next key, once', async () => {
    const { data, both } = await installation()
    await run(['publish', ...both], stsCommand)
    const rotated = await run(['rotate', '--endpoint', 'aws', ...both])
    expect(rotated.code).toBe(0)
    expect(rotated.out.map((line) => line.trim().split(' ')[0]).slice(0, 3)).toEqual(['aws', 'next', 'active'])
    expect(rotated.out[1]).toContain('signs from')
    const { keys } = JSON.parse(await readFile(join(data, 'site', 'certs'), 'utf8')) as { keys: unknown[] }
    expect(keys).toHaveLength(2)
    const again = await run(['rotate', '--endpoint', 'aws', ...both])
    expect(again).toMatchObject({ code: 1, errors: ['gatehouse keys: endpoint "aws" has a next key already'] })
  })

  test('what cannot be published is told, and is exit code 1', async () => {
    const { config, data, both } = await installation()
    await writeFile(join(data, 'site'), 'a file in the way')
    const { code, out } = await run(['publish', ...both])
    expect(code).toBe(1)
    expect(out.join('\n')).toMatch(/published to folder site: FAILED once, last done never, again at .*: E/)
    expect((await run(['list', '--data', data])).code).toBe(1)
    await writeFile(join(config, 'values.yaml'), 'sts: { endpoints: 5 }')
    const broken = await run(['publish', ...both])
    expect(broken.code).toBe(1)
    expect(broken.errors.join('\n')).toContain('values.yaml:1')
  })

  test('wrong usage is told before anything is opened', async () => {
    const { data, both } = await installation()
    for (const args of [['rotate'], ['rotate', '--config', 'x'], ['publish'], ['burn'], []]) {
      expect((await run([...args, '--data', '/nowhere'])).code).toBe(2)
    }
    expect((await run(['list', '--data', data], stsCommand)).code).toBe(2)
    expect(await run(['--help'], stsCommand)).toMatchObject({ code: 0 })
    expect(JSON.stringify(await run(['--help'], stsCommand))).toMatch(/gatehouse sts explain.*gatehouse sts publish/)
    expect(JSON.stringify(await run(['--help'], stsCommand))).not.toContain('gatehouse keys')
    expect(await run(['publish', '--endpoint', 'x', ...both])).toMatchObject({
      code: 1,
      errors: ['gatehouse keys: no endpoint "x"; there is aws'],
    })
  })
})
