import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { auditCommand } from '#cli/commands/audit.ts'
import { stsCommand } from '#cli/commands/sts.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { FakeIssuer, rsaKey, signedToken } from '#testing/login/fake-issuer.ts'

/** Builds of GitHub Actions and GitLab CI get tokens for a cloud by identity, without a cluster or shared secret. */
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-builds-'))
const [githubKey, gitlabKey] = [rsaKey('38826b17'), rsaKey('4i3sFE7sxqNPOT7')]
const audience = 'https://gatehouse.example.com'
let github: FakeIssuer
let gitlab: FakeIssuer
let gateway: GatewayProcess

beforeAll(async () => {
  github = await FakeIssuer.start([githubKey])
  gitlab = await FakeIssuer.start([gitlabKey])
  writeFileSync(
    join(folder, 'values.yaml'),
    `sts:
  issuers:
    - name: github
      issuer: ${github.url}
      audience: ${audience}
      claims: [repository, repository_owner, ref, environment, job_workflow_ref, event_name]
    - name: gitlab
      issuer: ${gitlab.url}
      audience: ${audience}
      claims: [project_path, ref, ref_type, ref_protected, environment]
  endpoints:
    - name: deploy
      audience: sts.amazonaws.com
      path: /sts/deploy
      preset: aws
      subjectIssuers: [github, gitlab]
      issuer: { host: issuer.example.com, path: /deploy }
      azRules:
        - scope: filter
          constraint: (&(issuer=github)(repository=octo-org/octo-repo)(environment=production))
        - scope: filter
          constraint: (&(issuer=gitlab)(project_path=my-group/my-project)(ref_protected=true)(ref_type=branch)(ref=main))
      additionalAttributes: [repository, project_path]
`,
  )
  gateway = await startGatewayProcess({ config: folder })
})

afterAll(async () => {
  await gateway?.stop()
  await Promise.all([github?.close(), gitlab?.close()])
  rmSync(folder, { recursive: true, force: true })
})

const times = () => {
  const now = Math.floor(Date.now() / 1000)
  return { iat: now, nbf: now - 600, exp: now + 300 }
}

/** The claims of GitHub's documentation. */
const fromGithub = (more: JWTPayload = {}): Promise<string> =>
  signedToken(githubKey, {
    jti: 'example-id',
    sub: 'repo:octo-org/octo-repo:environment:production',
    environment: 'production',
    aud: audience,
    ref: 'refs/heads/main',
    sha: 'example-sha',
    repository: 'octo-org/octo-repo',
    repository_owner: 'octo-org',
    actor_id: '12',
    repository_visibility: 'private',
    repository_id: '74',
    repository_owner_id: '65',
    run_id: 'example-run-id',
    run_number: '10',
    run_attempt: '2',
    runner_environment: 'github-hosted',
    actor: 'octocat',
    workflow: 'example-workflow',
    head_ref: '',
    base_ref: '',
    event_name: 'workflow_dispatch',
    ref_type: 'branch',
    job_workflow_ref: 'octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main',
    iss: github.url,
    ...times(),
    ...more,
  })

/** The claims of GitLab's documentation. */
const fromGitlab = (more: JWTPayload = {}): Promise<string> =>
  signedToken(gitlabKey, {
    namespace_id: '72',
    namespace_path: 'my-group',
    project_id: '20',
    project_path: 'my-group/my-project',
    user_id: '1',
    user_login: 'sample-user',
    user_email: 'sample-user@example.com',
    pipeline_id: '574',
    pipeline_source: 'push',
    job_id: '302',
    ref: 'main',
    ref_type: 'branch',
    ref_path: 'refs/heads/main',
    ref_protected: 'true',
    groups_direct: ['my-group'],
    runner_id: 1,
    runner_environment: 'self-hosted',
    sha: '714a629c0b401fdce83e847fc9589983fc6f46bc',
    jti: '235b3a54-b797-45c7-ae9a-f72d7bc6ef5b',
    aud: audience,
    iss: gitlab.url,
    sub: 'project_path:my-group/my-project:ref_type:branch:ref:main',
    ...times(),
    ...more,
  })

const exchange = (token: string): Promise<Response> =>
  fetch(`${gateway.url}/sts/deploy/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    }),
  })

async function run(command: typeof stsCommand, ...args: string[]) {
  const lines: string[] = []
  const io = { stdout: (line: string) => void lines.push(line), stderr: (line: string) => void lines.push(line) }
  return { code: await command(args, io), lines }
}

it('builds of both get tokens that the published keys verify', async () => {
  const documents = await (await fetch(`${gateway.url}/sts/deploy/issuer-docs`)).json()
  const keys = createLocalJWKSet((documents as { keys: JSONWebKeySet }).keys)
  const subjects = []
  for (const token of [await fromGithub(), await fromGitlab()]) {
    const answer = await exchange(token)
    const { access_token: given, expires_in: seconds } = (await answer.json()) as Record<string, never>
    const { payload } = await jwtVerify(String(given), keys, {
      issuer: 'https://issuer.example.com/deploy',
      audience: 'sts.amazonaws.com',
    })
    subjects.push([payload.sub, payload['repository'] ?? payload['project_path'], Number(seconds) <= 300])
    expect(Object.keys(payload)).not.toContain('namespace')
  }
  expect(subjects).toEqual([
    ['github:repo:octo-org/octo-repo:environment:production', 'octo-org/octo-repo', true],
    ['gitlab:project_path:my-group/my-project:ref_type:branch:ref:main', 'my-group/my-project', true],
  ])
})

it('other builds get none: another branch, a fork, a pull request, and one of the other issuer that claims to be the first', async () => {
  const answers = []
  for (const token of [
    await fromGithub({ environment: 'staging', sub: 'repo:octo-org/octo-repo:environment:staging' }),
    await fromGithub({ repository: 'fork/octo-repo', sub: 'repo:fork/octo-repo:environment:production' }),
    await fromGitlab({ ref: 'topic', ref_protected: 'false' }),
    await fromGitlab({
      repository: 'octo-org/octo-repo',
      environment: 'production',
      project_path: 'x',
      issuer: 'github',
    }),
    await fromGitlab({ iss: github.url }),
    await fromGithub({ aud: 'https://github.com/octo-org' }),
    await fromGithub({ exp: times().iat - 60 }),
  ]) {
    const answer = await exchange(token)
    answers.push([answer.status, ((await answer.json()) as { error: string }).error])
  }
  const [, , , , bad] = answers
  expect(answers.slice(0, 4)).toEqual(Array(4).fill([403, 'access_denied']))
  expect(answers.slice(4)).toEqual(Array(3).fill([400, bad?.[1]]))
})

it('explain agrees about a build’s token, and the audit names the build', async () => {
  const file = join(folder, 'build.jwt')
  writeFileSync(file, await fromGithub())
  const allowed = await run(stsCommand, 'explain', '--config', folder, 'deploy', '--token', file)
  expect(allowed.lines).toContain('token        accepted by the keys of its issuer')
  expect(allowed.lines).toContain('             sub: "github:repo:octo-org/octo-repo:environment:production"')
  expect(allowed.code).toBe(0)
  writeFileSync(file, await fromGithub({ environment: 'staging' }))
  const denied = await run(stsCommand, 'explain', '--config', folder, 'deploy', '--token', file)
  expect(denied.lines.join('\n')).toContain('(environment=production) does not match: environment is "staging"')
  expect(denied.code).toBe(1)
  const { lines } = await run(
    auditCommand,
    ...['tail', '--output', 'json', '--data', gateway.dataFolder, '--target', 'deploy'],
    ...['--subject', 'github:repo:octo-org/octo-repo:environment:production'],
  )
  const rows = JSON.parse(lines.join('\n')) as { action: string; value?: string; reason: string }[]
  expect(JSON.parse(rows[0]?.reason ?? '{}')).toMatchObject({
    issuer: 'github',
    review: 'keys',
    ttl: expect.any(Number),
  })
  expect(rows.map(({ action }) => action)).toContain('issue')
  expect(await run(auditCommand, 'verify', '--data', gateway.dataFolder)).toMatchObject({ code: 0 })
})

it('an unreachable issuer delays only its own builds', async () => {
  const fresh = rsaKey('new')
  gitlab.overrides.set('/issuer/certs', (_request, response) => response.writeHead(503).end())
  gitlab.keys = [fresh]
  expect((await exchange(await fromGithub())).status).toBe(200)
  expect(decodeJwt(await fromGitlab()).iss).toBe(gitlab.url)
  // Known keys are used for an hour while the issuer is unreachable.
  expect((await exchange(await fromGitlab())).status).toBe(200)
})
