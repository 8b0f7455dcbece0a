import { generateKeyPairSync } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { webhookKeys } from '#config/configuration/sts-webhook.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { publicTokenKey } from '#protocols/sts/signed-token.ts'
import { openStorage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { auditCommand } from './audit.ts'
import { keysCommand } from './keys.ts'
import { stsCommand } from './sts.ts'

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

async function keysOf(data: string): Promise<{ kid: string; state: string }[]> {
  const { out } = await run(['list', '--data', data, '--output', 'json'])
  return (JSON.parse(out.join('')) as { keys: { kid: string; state: string }[] }[])[0]?.keys ?? []
}

async function publishedIn(data: string): Promise<string[]> {
  const { keys } = JSON.parse(await readFile(join(data, 'site', 'certs'), 'utf8')) as { keys: { kid: string }[] }
  return keys.map(({ kid }) => kid)
}

async function eventsOf(data: string): Promise<{ event: string; value: string; requestor: string }[]> {
  const { out } = await run(
    ['tail', '--output', 'json', '--data', data, '--target', 'aws', '--limit', '100'],
    auditCommand,
  )
  const rows: { kind: string; reason: string; value: string; requestor: string }[] = JSON.parse(out.join(''))
  return rows.map(({ reason, value, requestor }) => ({
    ...(JSON.parse(reason) as { event: string }),
    value,
    requestor,
  }))
}

describe('gatehouse keys', () => {
  test('publish creates the first key, and list shows it without its private part', async () => {
    const { data, both } = await installation()
    expect(await run(['list', '--data', data])).toEqual({
      code: 0,
      out: [],
      errors: ['There are no keys. The gateway creates them when it starts with sts.endpoints.'],
    })
    expect(await run(['list', '--data', data, '--endpoint', 'aws'])).toMatchObject({
      code: 1,
      errors: ['gatehouse keys: there are no endpoints with keys'],
    })
    const published = await run(['publish', ...both])
    expect(published).toMatchObject({ code: 0, errors: [] })
    expect(published.out[0]).toBe('aws')
    expect(published.out[1]).toMatch(/^ {2}active {3}[\w-]{43} ES256 {2}signs since \d{4}-/)
    const { keys } = JSON.parse(await readFile(join(data, 'site', 'certs'), 'utf8')) as { keys: { kid: string }[] }
    const { out } = await run(['list', '--data', data, '--output', 'json'])
    const listed = JSON.parse(out.join('')) as { keys: { kid: string; state: string }[] }[]
    expect(listed[0]?.keys).toMatchObject([{ kid: keys[0]?.kid, state: 'active', given: false }])
    expect(out.join()).not.toContain('sealed')
  })

  test('rotate creates and publishes the next key, once', async () => {
    const { data, both } = await installation()
    await run(['publish', ...both], stsCommand)
    const rotated = await run(['rotate', '--endpoint', 'aws', ...both])
    expect(rotated.code).toBe(0)
    expect(rotated.out.map((line) => line.trim().split(' ')[0]).slice(0, 3)).toEqual(['aws', 'next', 'active'])
    expect(rotated.out[1]).toContain('signs from')
    const { keys } = JSON.parse(await readFile(join(data, 'site', 'certs'), 'utf8')) as { keys: unknown[] }
    expect(keys).toHaveLength(2)
    const again = await run(['rotate', '--endpoint', 'aws', ...both])
    expect(again).toMatchObject({
      code: 1,
      errors: ['gatehouse keys: endpoint "aws" has a next key already; wait until it signs, or use --now'],
    })
  })

  test('rotate --now lets the next key sign at once, and prints who may reject it until when', async () => {
    const { data, both } = await installation()
    await run(['publish', ...both])
    const before = await keysOf(data)
    const rotated = await run(['rotate', '--endpoint', 'aws', '--now', '--by', 'ann', ...both])
    expect(rotated).toMatchObject({ code: 0, errors: [] })
    const after = await keysOf(data)
    expect(after.map(({ state }) => state)).toEqual(['retiring', 'active'])
    expect(after[0]?.kid).toBe(before[0]?.kid)
    expect(rotated.out.slice(-2)).toEqual([
      `${after[1]?.kid} signs now. All gateways follow within 15 seconds.`,
      expect.stringMatching(/^Verifiers with a cached copy of the documents may refuse its tokens until \d{4}-.*Z\.$/),
    ])
    expect(await publishedIn(data)).toEqual([after[1]?.kid, after[0]?.kid])
    const events = await eventsOf(data)
    expect(
      events
        .filter(({ requestor }) => requestor === 'ann')
        .map(({ event }) => event)
        .sort(),
    ).toEqual(['key activated', 'key created', 'key retired'])
  })

  test('rotate --now lets a waiting key sign, and none that could not be published', async () => {
    const { data, both } = await installation()
    await run(['rotate', '--endpoint', 'aws', ...both])
    await rm(join(data, 'site'), { recursive: true })
    await writeFile(join(data, 'site'), 'a file in the way')
    const stuck = await run(['rotate', '--endpoint', 'aws', '--now', ...both])
    expect(stuck.code).toBe(1)
    expect(stuck.errors).toEqual([expect.stringContaining('so it does not sign yet')])
    expect((await keysOf(data)).map(({ state }) => state)).toEqual(['active', 'next'])
    await rm(join(data, 'site'))
    expect((await run(['rotate', '--endpoint', 'aws', '--now', ...both])).code).toBe(0)
    expect((await keysOf(data)).map(({ state }) => state)).toEqual(['retiring', 'active'])
  })

  test('rotate --now while gateways still follow another rotation makes no further key, and says so', async () => {
    const { data, both } = await installation()
    await run(['publish', ...both])
    await run(['rotate', '--endpoint', 'aws', '--now', ...both])
    const before = await keysOf(data)
    const joined = await run(['rotate', '--endpoint', 'aws', '--now', ...both])
    expect(joined).toMatchObject({ code: 0, errors: [] })
    expect(joined.out.at(-1)).toMatch(
      new RegExp(
        `^${before[1]?.kid} signs since \\d{4}-.*: it replaced another key just now, so this call made no further one`,
      ),
    )
    expect(await keysOf(data)).toEqual(before)
  })

  test('revoke deletes a key at once, lets another sign, and never accepts it again', async () => {
    const { config, data, both } = await installation()
    await run(['publish', ...both])
    const [leaked] = await keysOf(data)
    const kid = leaked?.kid ?? ''
    const unconfirmed = await run(['revoke', kid, ...both])
    expect(unconfirmed.code).toBe(2)
    expect(unconfirmed.errors[0]).toContain('add --yes')
    const revoked = await run(['revoke', kid, '--yes', '--by', 'ann', ...both])
    expect(revoked).toMatchObject({ code: 0, errors: [] })
    const [fresh, ...others] = await keysOf(data)
    expect([fresh?.state, others.length, fresh?.kid === kid]).toEqual(['active', 0, false])
    expect(await publishedIn(data)).toEqual([fresh?.kid])
    expect(revoked.out.slice(0, 3)).toEqual([
      expect.stringContaining(`Revoked ${kid}. All gateways stop using it`),
      expect.stringContaining(`accept tokens of ${kid}`),
      expect.stringContaining(`${fresh?.kid} signs now`),
    ])
    const events = (await eventsOf(data)).filter(({ requestor }) => requestor === 'ann')
    expect(events.map(({ event, value }) => `${event} ${value}`).sort()).toEqual([
      `key activated ${fresh?.kid}`,
      `key created ${fresh?.kid}`,
      `key revoked ${kid}`,
    ])
    expect((await run(['revoke', kid, '--yes', ...both])).errors).toEqual([
      `gatehouse keys: no endpoint has the key ${kid}; run "gatehouse keys list" to see the keys`,
    ])
    // A configured key comes back with every look, and stays out.
    const given = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    await mkdir(join(config, 'keys'))
    await writeFile(join(config, 'keys', 'aws.key'), String(given.export({ type: 'pkcs8', format: 'pem' })))
    await run(['publish', ...both])
    await run(['rotate', '--endpoint', 'aws', '--now', ...both])
    const givenKid = (await keysOf(data)).find(({ state }) => state === 'active')?.kid ?? ''
    expect(givenKid).toBe(publicTokenKey(given).kid)
    await run(['revoke', givenKid, '--yes', ...both])
    const later = await run(['publish', ...both])
    expect(later.code).toBe(1)
    expect(later.out.join('\n')).toContain(
      `key source: REJECTED, keeping the keys above: the key "aws" was revoked (${givenKid})`,
    )
    expect((await keysOf(data)).map((key) => key.kid)).not.toContain(givenKid)
  })

  test('revoke removes a key that issuers of two hosts share from both, and skips the keys of the webhook', async () => {
    const { config, data, both } = await installation()
    const one = values('site').replace('issuer.invalid', 'issuer.invalid, keypair: shared')
    const [, endpoint = ''] = one.split('endpoints:\n')
    const two = endpoint.replaceAll('aws', 'gcp').replace('issuer.invalid', 'other.invalid').replace('site', 'other')
    await writeFile(join(config, 'values.yaml'), one + two)
    await mkdir(join(config, 'keys'))
    const given = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    await writeFile(join(config, 'keys', 'shared.key'), String(given.export({ type: 'pkcs8', format: 'pem' })))
    const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger })
    await storage.keys.swap(webhookKeys, 0, { certificate: 'something else' })
    await storage.close()
    await run(['publish', ...both])
    const { kid } = publicTokenKey(given)
    const revoked = await run(['revoke', kid, '--yes', ...both])
    expect(revoked.errors).toEqual([])
    expect(revoked.out.filter((line) => line.startsWith('Revoked '))).toHaveLength(2)
    for (const folder of ['site', 'other']) {
      expect(await readFile(join(data, folder, 'certs'), 'utf8')).not.toContain(kid)
    }
  })

  test('revoke prints that the key is revoked before it waits for another process that publishes', async () => {
    const { data, both } = await installation()
    await run(['publish', ...both])
    const [{ kid } = { kid: '' }] = await keysOf(data)
    const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger })
    await storage.keys.claim('aws', 'a gateway that was killed', 1500)
    await storage.close()
    const { code, out, errors } = await run(['revoke', kid, '--yes', ...both])
    expect([code, out[0]]).toEqual([0, expect.stringContaining(`Revoked ${kid}`)])
    expect(errors).toEqual(['Another process publishes for "aws". Waiting for at most two minutes.'])
    expect(await publishedIn(data)).not.toContain(kid)
  })

  test('revoke drops a next or a retiring key, and the active one stays', async () => {
    const { data, both } = await installation()
    await run(['rotate', '--endpoint', 'aws', ...both])
    const [active, next] = await keysOf(data)
    await run(['revoke', next?.kid ?? '', '--yes', ...both])
    expect((await keysOf(data)).map(({ kid }) => kid)).toEqual([active?.kid])
    await run(['rotate', '--endpoint', 'aws', '--now', ...both])
    await run(['revoke', active?.kid ?? '', '--yes', ...both])
    expect((await keysOf(data)).map(({ state }) => state)).toEqual(['active'])
  })

  test('a failed publication is reported with exit code 1', async () => {
    const { config, data, both } = await installation()
    await writeFile(join(data, 'site'), 'a file in the way')
    const { code, out } = await run(['publish', ...both])
    expect(code).toBe(1)
    expect(out.join('\n')).toMatch(/published to folder site: FAILED once, never succeeded, next attempt at .*: E/)
    expect((await run(['list', '--data', data])).code).toBe(1)
    await writeFile(join(config, 'values.yaml'), 'sts: { endpoints: 5 }')
    const broken = await run(['publish', ...both])
    expect(broken.code).toBe(1)
    expect(broken.errors.join('\n')).toContain('values.yaml:1')
  })

  test.each([
    [[], 'gatehouse keys: missing argument: one of list, rotate, revoke, publish'],
    [['rotat'], 'gatehouse keys: unknown action "rotat" (did you mean "rotate"?)'],
    [['rotat', 'aws'], 'gatehouse keys: unknown action "rotat" (did you mean "rotate"?)'],
    [['revoke'], 'gatehouse keys: missing argument: KID'],
    [['revoke', 'x', '--yes'], 'gatehouse keys: --config is required'],
  ])('%j is wrong usage, and the message names the problem', async (args, message) => {
    const { code, errors } = await run(args)
    expect([code, errors[0]]).toEqual([2, message])
  })

  test('list names the endpoints that have keys when the given one has none', async () => {
    const { data, both } = await installation()
    await run(['publish', ...both])
    expect(await run(['list', '--endpoint', 'awz', '--data', data])).toMatchObject({
      code: 1,
      errors: ['gatehouse keys: no endpoint "awz" (did you mean "aws"?); the endpoints with keys are aws'],
    })
  })

  test('wrong usage is reported before anything is opened', async () => {
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
      errors: ['gatehouse keys: no endpoint "x"; the token endpoints in the configuration are aws'],
    })
  })
})
