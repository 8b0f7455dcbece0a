import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { defineAll } from '#testing/kubernetes/custom-resources.ts'
import { expectDocumented } from '#testing/kubernetes/driven-charts.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { SignedIn, valueObjects, writeConfig, writeSecret } from '#testing/kubernetes/openunison-portal.ts'
import { FakeGitHub } from '#testing/login/fake-github.ts'

onKubernetes('a portal in the form of OpenUnison’s charts, with a login at GitHub', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openunison-github-'))
  const config = join(folder, 'config')
  const sets = ['portal', 'login-github']
  let own = ''
  let gateway: GatewayProcess
  let github: FakeGitHub

  beforeAll(async () => {
    await defineAll(cluster)
    own = await cluster.namespace()
    github = await FakeGitHub.start()
    writeConfig(config, sets, valueObjects(cluster, { K8S_OPENUNISON_NS: own }))
    writeSecret(config, 'acme-secrets', 'GITHUB_CLIENT_SECRET', github.clientSecret)
    // As for a GitHub of one's own.
    const places = `idpURL: ${github.url}/login/oauth/authorize
      loadTokenURL: ${github.url}/login/oauth/access_token
      apiUrl: ${github.url}
      clientid: ${github.clientId}`
    const file = join(config, 'login-github.yaml')
    writeFileSync(file, readFileSync(file, 'utf8').replace('clientid: acme-portal', places))
    gateway = await startGatewayProcess({ config, dataFolder: join(folder, 'data') })
  })
  afterAll(async () => {
    await gateway?.stop()
    await github?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const emails = (login: string) => [{ email: `${login}@acme.test`, primary: true, verified: true }]

  test('a member of the team signs in there and has an account, the portal and tokens here', {
    timeout: 300_000,
  }, async () => {
    const account = { id: 1, login: 'ada', name: 'Ada Lovelace', emails: emails('ada'), teams: ['acme/platform'] }
    const ada = await SignedIn.atGitHub(github, account, gateway)
    const path = `/apis/openunison.tremolo.io/v1/namespaces/${own}/users/ada`
    expect(await cluster.must('GET', path)).toMatchObject({ spec: { sub: 'ada', email: 'ada@acme.test' } })
    expectDocumented('Login portal, GitHub', sets, { ...(await ada.driven()), namespaces: '–' })
  })

  test('somebody else is refused, and gets no account', { timeout: 300_000 }, async () => {
    const browser = new PlainBrowser(gateway.url)
    const begun = await browser.get('/scale/main/user')
    const account = { id: 2, login: 'eve', emails: emails('eve'), teams: ['acme/other'] }
    const done = await browser.get(github.consent(new URL(begun.location), account).toString())
    expect(done.location).not.toBe('/scale/main/user')
    expect((await browser.get('/scale/main/user')).status).not.toBe(200)
    const path = `/apis/openunison.tremolo.io/v1/namespaces/${own}/users/eve`
    expect((await cluster.call('GET', path)).status).toBe(404)
  })
})
