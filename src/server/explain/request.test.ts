import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { explainCommand } from '#cli/commands/explain.ts'

const explain = (...args: string[]): Promise<string> => explainIn('examples/quickstart', ...args)

async function explainIn(config: string, ...args: string[]): Promise<string> {
  const lines: string[] = []
  const io = { stdout: (line: string) => void lines.push(line), stderr: (line: string) => void lines.push(line) }
  await explainCommand(['--config', config, ...args], io)
  return lines.join('\n')
}

const people = 'http://127.0.0.1:8080/scim/people/Users'
const note = /^note .*--as dn=NAME$/m

test('a failed rule about names says how to set the name of the caller', async () => {
  expect(await explain('GET', people, '--as', 'sub=idp')).toMatch(note)
  expect(await explain('GET', people, '--as', 'dn=sub=eve,ou=api,o=Tremolo')).not.toMatch(note)
  expect(await explain('GET', people, '--as', 'dn=sub=idp,ou=api,o=Tremolo')).toMatch(/^decision +allowed$/m)
  expect(await explain('GET', 'http://127.0.0.1:8080/scim/crm/Users', '--as', 'sub=eve')).not.toMatch(note)
})

test('an unknown path lists the paths of its host, an unknown host the hosts', async () => {
  expect(await explain('GET', 'http://127.0.0.1:8080/scim')).toContain(
    'paths that are served on 127.0.0.1: /, /auth/idp/portal, /call-workflow, /dev-issuer, /main, /portal, /register, /scim/crm, /scim/people, ',
  )
  expect(await explain('GET', 'http://elsewhere.test/scim/crm')).toContain(
    'hosts that are served: 127.0.0.1, localhost',
  )
})

test('an application that is set aside is not served, and the cause is shown', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-explain-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  cpSync('examples/quickstart', folder, { recursive: true })
  const crm = readFileSync(join(folder, 'crm.yaml'), 'utf8').replace('workflowName: crm-sync', 'workflowName: crm-snyc')
  writeFileSync(join(folder, 'crm.yaml'), crm)
  const text = await explainIn(folder, 'GET', 'http://127.0.0.1:8080/scim/crm/Users', '--as', 'sub=idp')
  expect(text).toMatch(/^ +is set aside because of workflow "crm-snyc": no workflow named "crm-snyc"$/m)
  expect(text).toMatch(/^decision +not served: 503$/m)
  expect(await explainIn(folder, 'GET', people, '--as', 'dn=sub=idp,ou=api,o=Tremolo')).toMatch(/^decision +allowed$/m)
})

test('a URL that OpenUnison would proxy is allowed and not answered; an error of its own sets an application aside', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-explain-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const application = (name: string, className: string) => `---
apiVersion: openunison.tremolo.io/v1
kind: Application
metadata: { name: ${name} }
spec:
  urls:
    - hosts: [wiki.test]
      uri: /${name}
      proxyTo: http://wiki.svc\${fullURI}
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: ${className}, params: {} }]
`
  const text = application('wiki', 'filters.NoCache') + application('old', 'filters.Nothing')
  writeFileSync(join(folder, 'all.yaml'), text)
  const proxied = await explainIn(folder, 'GET', 'http://wiki.test/wiki', '--as', 'uid=ada')
  expect(proxied).toMatch(/^decision +allowed\n.*filters\.NoCache.*\nanswer +404: no filter of this URL answers$/m)
  const aside = await explainIn(folder, 'GET', 'http://wiki.test/old', '--as', 'uid=ada')
  expect(aside).toMatch(/^ +is set aside because of its own error \(all\.yaml:\d+:\d+\): spec\.urls\[0\]\.filterChain/m)
  expect(await explain('GET', people, '--as', 'dn=sub=idp,ou=api,o=Tremolo')).not.toMatch(/^answer/m)
})

test('what callers of workflows may request is shown', async () => {
  const shown = await explain('POST', 'http://127.0.0.1:8080/call-workflow', '--as', 'uid=ada')
  for (const line of ['workflow: crm-sync', 'for the user: caller', 'groups: none', 'requestor: caller']) {
    expect(shown).toMatch(new RegExp(`^ +${line}$`, 'm'))
  }
})

test('a chain that asks the user for input says so, and where', async () => {
  const text = await explainIn('examples/login', 'GET', 'http://127.0.0.1:8080/hello')
  expect(text).toMatch(/^chain +login, level 10$/m)
  expect(text).toMatch(/^ +login-form, required, asks people at \/auth\/formLogin$/m)
  expect(text).toMatch(/would have to authenticate: 401\n +a browser that asks for a page is sent to log in instead/)
  expect(await explain('GET', people)).not.toContain('sent to log in')
  const step = await explainIn('examples/login', 'GET', 'http://127.0.0.1:8080/auth/formLogin')
  expect(step).toMatch(/^login +a step of logins, at \/auth\/formLogin: answered before any application/m)
})

test('public assets are shown as public, and the page beside them is not', async () => {
  const text = await explain('GET', 'http://127.0.0.1:8080/portal/assets/index.js')
  expect(text).toMatch(/^open +to everybody/m)
  expect(text).toMatch(/^filter +filters\.Portal/m)
  expect(await explain('POST', 'http://127.0.0.1:8080/portal/assets/index.js')).not.toMatch(/^open/m)
  expect(await explain('GET', 'http://127.0.0.1:8080/portal/requests')).not.toMatch(/^open/m)
})
