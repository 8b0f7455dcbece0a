import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type GatewayProcess, gatehouse, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'

const run = promisify(execFile)
const config = 'examples/token-service'

/** The steps of the example's README. */
onKubernetes('the example token-service', (cluster) => {
  const account = { namespace: 'shop', name: 'cart' }
  const podName = `cart-${randomUUID().slice(0, 8)}`
  const file = join(mkdtempSync(join(tmpdir(), 'gatehouse-example-')), 'cart.jwt')
  const environment = { KUBECONFIG: cluster.connection.kubeconfig }
  let gateway: GatewayProcess
  let token = ''

  beforeAll(async () => {
    // Other suites may have created both.
    await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: account.namespace } })
    await cluster.serviceAccount(account).catch(() => {})
    const boundPod = await cluster.pod(account, podName)
    token = await cluster.token(account, { audiences: ['gatehouse-sts'], boundPod })
    writeFileSync(file, token)
    gateway = await startGatewayProcess({ config, environment })
  }, 60_000)

  afterAll(async () => {
    await gateway?.stop()
    await cluster.call('DELETE', `/api/v1/namespaces/${account.namespace}/pods/${podName}?gracePeriodSeconds=0`)
  })

  const exchange = (endpoint: string): Promise<Response> =>
    fetch(`${gateway.url}/sts/${endpoint}/token`, {
      method: 'POST',
      headers: { accept: 'application/jwt' },
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        subject_token: token,
      }),
    })

  const command = (...args: string[]): Promise<{ stdout: string }> =>
    run(gatehouse, args, { env: { ...process.env, ...environment }, timeout: 100_000 })

  test('both endpoints give the pod a token that their documents verify', async () => {
    const expected = [
      ['aws', 'sts.amazonaws.com', 'k8s:shop:cart'],
      ['vault', 'https://vault.example.com', 'k8s:shop'],
    ] as const
    for (const [endpoint, audience, subject] of expected) {
      const answer = await exchange(endpoint)
      expect(answer.status).toBe(200)
      const documents = (await (await fetch(`${gateway.url}/sts/${endpoint}/issuer-docs`)).json()) as {
        keys: JSONWebKeySet
      }
      const issuer = `https://issuer.example.com/${endpoint}`
      await jwtVerify(await answer.text(), createLocalJWKSet(documents.keys), { issuer, audience, subject })
    }
  })

  test('the documents are in the folder, and keys list shows the keys', async () => {
    const folder = join(gateway.dataFolder, 'issuer')
    await vi.waitFor(() => {
      for (const issuer of ['aws', 'vault']) expect(existsSync(join(folder, issuer, 'certs'))).toBe(true)
    }, 20_000)
    // It exits with 1 after reading back has failed, since no server has this issuer.
    const told = await command('keys', 'list', '--data', gateway.dataFolder).catch((error) => error)
    expect(told.stdout).toMatch(/^aws\n {2}active /m)
  })

  test('explain shows who gets a token and who does not', async () => {
    const { stdout } = await command('sts', 'explain', '--config', config, 'aws', '--token', file)
    expect(stdout).toContain('cart')
    const basket = ['--as', 'namespace=shop', '--as', 'saname=basket']
    await expect(command('sts', 'explain', '--config', config, 'aws', ...basket)).rejects.toMatchObject({ code: 1 })
    await command('sts', 'explain', '--config', config, 'vault', ...basket)
  })

  test('deleting the pod ends it', { timeout: 60_000 }, async () => {
    await cluster.deletePod(account.namespace, podName)
    await vi.waitFor(
      async () => {
        for (const endpoint of ['aws', 'vault']) expect((await exchange(endpoint)).status).toBe(400)
      },
      { timeout: 40_000, interval: 2_500 },
    )
  })
})
