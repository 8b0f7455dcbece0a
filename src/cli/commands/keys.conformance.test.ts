import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase, temporaryFolder } from '#testing/databases/databases.ts'
import { gatehouse as program, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { SigningCluster } from '#testing/sts/signing-cluster.ts'

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

const values = `
sts:
  endpoints:
    - name: aws
      audience: sts.amazonaws.com
      path: /sts/aws
      azRules: [{ scope: filter, constraint: "(namespace=apps)" }]
      issuer: { host: issuer.invalid }
      clusters: [k8s]
      keys: { readBack: written }
      publish: [{ type: folder, folder: site }]
`

interface Ended {
  readonly code: number
  readonly out?: string
  readonly errors: string
}

/** A separate process. */
const gatehouse = (args: readonly string[], environment: Readonly<Record<string, string>>): Promise<Ended> =>
  new Promise((resolve) => {
    const env = { ...process.env, ...environment }
    const child = execFile(program, args, { env, timeout: 50_000 }, (_error, out, errors) =>
      resolve({ code: child.exitCode ?? -1, out, errors }),
    )
  })

onEachDatabase('gatehouse keys, several processes at once', (freshUrl) => {
  async function installation() {
    const [url, config, data] = [await freshUrl(), temporaryFolder(), temporaryFolder()]
    await mkdir(join(config, 'targets'))
    await writeFile(join(config, 'values.yaml'), values)
    await writeFile(join(config, 'targets', 'k8s.yaml'), target)
    const environment = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 3).toString('base64'), GATEHOUSE_DATABASE: url }
    return {
      data,
      keys: (...args: string[]) => gatehouse(['keys', ...args, '--config', config, '--data', data], environment),
      ring: async () => {
        const storage = openStorage({ url, clock: systemClock, log: silentLogger })
        await storage.ready()
        const stored = (await storage.keys.get('aws'))?.ring as { keys: { kid: string; state: string }[] }
        await storage.close()
        return stored.keys
      },
    }
  }

  test('create one first key and one next key, and leave both documents complete', async () => {
    const { data, keys, ring } = await installation()
    const many = (action: string, count: number) =>
      Promise.all(Array.from({ length: count }, () => keys(action, '--endpoint', 'aws')))
    expect((await many('publish', 3)).map(({ code }) => code)).toEqual([0, 0, 0])
    const rotations = await many('rotate', 3)
    expect(rotations.map(({ code }) => code).sort()).toEqual([0, 1, 1])
    for (const { code, errors } of rotations) if (code === 1) expect(errors).toContain('has a next key already')
    const stored = await ring()
    expect(stored.map(({ state }) => state)).toEqual(['active', 'next'])
    const certs = JSON.parse(await readFile(join(data, 'site', 'certs'), 'utf8')) as { keys: { kid: string }[] }
    expect(certs.keys.map(({ kid }) => kid)).toEqual(stored.map(({ kid }) => kid))
  })

  test('that rotate at once cause one rotation', async () => {
    const { keys, ring } = await installation()
    expect((await keys('publish')).code).toBe(0)
    const rotate = () => keys('rotate', '--endpoint', 'aws', '--now')
    const ended = await Promise.all([rotate(), rotate(), rotate()])
    expect(ended.map(({ code }) => code)).toEqual([0, 0, 0])
    const stored = await ring()
    expect(stored.map(({ state }) => state)).toEqual(['retiring', 'active'])
    for (const { out } of ended) expect(out).toContain(`${stored[1]?.kid} signs `)
  })

  test('rotate at once and revoke while a gateway issues tokens: it follows, and none of its responses fails', {
    timeout: 180_000,
  }, async () => {
    const cluster = await SigningCluster.start()
    const [url, config, data] = [await freshUrl(), temporaryFolder(), temporaryFolder()]
    await writeFile(join(config, 'values.yaml'), values.replace('(namespace=apps)', '(namespace=shop)'))
    await writeFile(
      join(config, 'k8s.yaml'),
      target
        .replace('https://127.0.0.1:1', cluster.api.url)
        .replace('tokenFile, value: /nowhere/token', 'token, value: x'),
    )
    const environment = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 3).toString('base64'), GATEHOUSE_DATABASE: url }
    const keys = (...args: string[]) =>
      gatehouse(['keys', ...args, '--by', 'ann', '--config', config, '--data', data], environment)
    const gateway = await startGatewayProcess({ config, dataFolder: data, environment })
    try {
      const token = await cluster.token()
      const exchange = async (): Promise<string> => {
        const answer = await fetch(`${gateway.url}/sts/aws/token`, {
          method: 'POST',
          headers: { accept: 'application/jwt' },
          body: new URLSearchParams({
            grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
            subject_token: token,
            subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
          }),
        })
        if (answer.status === 429) return ''
        if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
        const jwt = await answer.text()
        const documents = await (await fetch(`${gateway.url}/sts/aws/issuer-docs`)).json()
        await jwtVerify(jwt, createLocalJWKSet((documents as { keys: JSONWebKeySet }).keys))
        return decodeProtectedHeader(jwt).kid ?? ''
      }
      const first = await exchange()
      expect((await keys('rotate', '--endpoint', 'aws', '--now')).code).toBe(0)
      await expect.poll(exchange, { timeout: 50_000, interval: 2500 }).not.toMatch(new RegExp(`^(|${first})$`))
      const second = await exchange()
      const revoked = await keys('revoke', second, '--yes')
      expect(revoked).toMatchObject({ code: 0, errors: '' })
      expect(revoked.out).toContain(`Revoked ${second}.`)
      await expect.poll(exchange, { timeout: 50_000, interval: 2500 }).not.toMatch(new RegExp(`^(|${second})$`))
      const documents = await (await fetch(`${gateway.url}/sts/aws/issuer-docs`)).text()
      expect(documents).not.toContain(second)
      // What sidecars ask.
      const keyState = async (kid: string) => (await fetch(`${gateway.url}/sts/aws/token/key/${kid}`)).status
      expect(await Promise.all([keyState(first), keyState(second), keyState('unknown')])).toEqual([204, 410, 204])
      const certs = await readFile(join(data, 'site', 'certs'), 'utf8')
      expect(certs).not.toContain(second)
    } finally {
      await gateway.stop()
      await cluster.close()
    }
  })
})
