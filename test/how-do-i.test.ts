import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { commandOutput, runCommand } from '#testing/gateway/command.ts'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

/** docs/how-do-i.md: the YAML of each recipe is loaded within the quickstart, and its commands run on the quickstart's data. */
const page = 'docs/how-do-i.md'

interface Recipe {
  readonly title: string
  readonly yaml: readonly string[]
  readonly commands: readonly string[]
  readonly text: string
}

interface Trial {
  /** Recipes whose YAML this one expects. */
  readonly after?: readonly string[]
  /** Commands that its reader has run before. */
  readonly first?: readonly string[]
  /** Values that its reader copies from the output of another command. */
  readonly values?: Readonly<Record<string, (folder: string) => Promise<string>>>
  /** Exit codes besides 0 that are an answer. */
  readonly codes?: readonly number[]
  /** What the commands print. */
  readonly prints?: readonly string[]
  /** Why commands that contain the text are only compared with the help of the command. */
  readonly notRun?: Readonly<Record<string, string>>
}

const runs = async (folder: string, state: string): Promise<string> => {
  const list = await commandOutput(
    'workflow',
    'list',
    '--data',
    join(folder, 'data'),
    '--state',
    state,
    '--output',
    'json',
  )
  return JSON.parse(list)[0]?.id
}

const trials: Readonly<Record<string, Trial>> = {
  'Post requests to Slack or Teams': { after: ['Send mail'] },
  'Cancel a request': { values: { ID: (folder) => runs(folder, 'waiting') }, prints: ['dorothy'] },
  'Add a user': { prints: ['mary'] },
  'Invite someone': { prints: ['annie@example.com'] },
  'Help a user who lost the second factor': {
    notRun: { 'reset-factors': 'needs a user with a factor; test/stories/second-factors.test.ts resets factors' },
  },
  'See what changed for a user': {
    first: ['gatehouse user passwd grace --config config --data data'],
    prints: ['grace'],
  },
  'Run behind nginx': { notRun: { serve: 'waits for a proxy; src/requests/listener has tests of its headers' } },
  'Find out why a request is denied': { codes: [1], prints: ['(&(sub=idp)(role=crm))'] },
  'Connect Entra ID': { prints: ['https://idm.example.com/scim/entra'] },
  'Connect Okta': { prints: ['https://idm.example.com/scim/okta'] },
  'Add a tenant': { prints: ['https://idm.example.com/tenants/acme/scim', 'ghs_'] },
  'Replace the token of a SCIM client': {
    first: ['gatehouse scim token create --client okta --data data'],
    prints: ['okta default valid', 'okta default expiring'],
  },
  'See what a SCIM change would do': {
    notRun: { curl: 'needs a running gateway; src/features/scim/gateway/dry-run.test.ts has one' },
  },
  // The gateway and its issuers do not run.
  'Know what happens while a target is down': { codes: [1], prints: ['OK      database'] },
  'Retry what failed': { values: { ID: (folder) => runs(folder, 'incident') }, prints: ['orphan'] },
  'Find out whether two systems agree': {
    notRun: { 'reconcile plan': 'needs a running gateway; test/stories/reconciliation.test.ts has one' },
  },
  'Rotate a signing key': { prints: ['active', 'next'] },
  'Revoke a leaked key': {
    values: {
      KID: async (folder) => {
        const list = await commandOutput('keys', 'list', '--data', join(folder, 'data'))
        return /active +(\S+)/.exec(list)?.[1] ?? ''
      },
    },
  },
  'Test who gets a token': { after: ['Give pods tokens for AWS'], prints: ['shop'] },
  'Find out what is wrong': { codes: [1], prints: ['OK      database'] },
  'Run as a service with systemd': { notRun: { systemctl: 'needs systemd' } },
  'Install with Helm': {
    notRun: { kubectl: 'needs a cluster', helm: 'needs a cluster; test/chart.test.ts renders it' },
  },
  'Survive the failure of a database server': {
    codes: [1],
    prints: ['OK      database'],
    notRun: { serve: 'needs two servers; npm run chaos -- --only failover stops one' },
  },
  'Get alerts from Prometheus': { notRun: { promtool: 'needs Prometheus' } },
  'Move from SQLite to PostgreSQL': {
    first: [
      'gatehouse workflow cancel WAITING --data data --reason "moves"',
      'gatehouse workflow cancel STOPPED --data data --reason "moves"',
    ],
    values: { WAITING: (folder) => runs(folder, 'waiting'), STOPPED: (folder) => runs(folder, 'incident') },
    notRun: { import: 'needs PostgreSQL; test/stories/move.test.ts imports into one' },
  },
  'Use all cores': { notRun: { serve: 'needs PostgreSQL; test/stories/workers.test.ts starts workers' } },
  'Know what happens while PostgreSQL is down': { codes: [1], prints: ['OK      database'] },
  'Restore a backup': { first: ['gatehouse backup /backups/gatehouse.db --data data --keys'] },
  'Replace the TLS certificate': { notRun: { openssl: 'needs openssl' } },
  'Find out why mail does not arrive': {
    notRun: { 'mail retry': 'needs a failed mail; src/cli/commands/mail.test.ts has one' },
  },
  'Verify that no one changed the audit': {
    first: ['gatehouse audit export --data data > audit.jsonl'],
    prints: ['all match the database'],
  },
}

const recipes: readonly Recipe[] = readFileSync(page, 'utf8')
  .split(/^(?=### )/m)
  .slice(1)
  .map((part) => {
    const text = part.replace(/^## [\s\S]*/m, '')
    const blocks = (language: string): string[] =>
      Array.from(
        text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm')),
        ([, block = '']) => block,
      )
    return {
      title: /^### (.*)$/m.exec(text)?.[1] ?? '',
      yaml: blocks('yaml'),
      commands: blocks('sh').flatMap((block) =>
        block
          .replaceAll(/\\\n\s*/g, '')
          .trim()
          .split('\n'),
      ),
      text,
    }
  })
const recipeOf = (title: string): Recipe => {
  const found = recipes.find((recipe) => recipe.title === title)
  if (found === undefined) throw new Error(`${page} has no recipe "${title}"`)
  return found
}

test('there are at least 40 recipes, each with YAML or commands, a link, and a place in the list at the top', () => {
  expect(recipes.length).toBeGreaterThanOrEqual(40)
  const list = readFileSync(page, 'utf8').split('\n## ')[0] ?? ''
  const anchorOf = (title: string): string => title.toLowerCase().replaceAll(' ', '-')
  for (const { title, yaml, commands, text } of recipes) {
    expect(yaml.length + commands.length, title).toBeGreaterThan(0)
    expect(text, title).toMatch(/\]\((?:guides|reference|concepts|storage|workflows)[^)]*\)/)
    expect(list, title).toContain(`(#${anchorOf(title)})`)
  }
  expect(Object.keys(trials).filter((title) => !recipes.some((recipe) => recipe.title === title))).toEqual([])
})

type Yaml = Record<string, unknown>
const isYaml = (value: unknown): value is Yaml => typeof value === 'object' && value !== null && !Array.isArray(value)
const yamlAt = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((inner, name) => (inner as Record<string | number, unknown> | undefined)?.[name], value)

/** Changes the objects of a file for which `change` returns true. */
function changeObjects(file: string, change: (object: Yaml) => boolean): void {
  const objects = parseAllDocuments(readFileSync(file, 'utf8')).map((document): unknown => document.toJS())
  expect(objects.filter((object) => isYaml(object) && change(object)).length, file).toBeGreaterThan(0)
  writeFileSync(file, objects.map((object) => stringify(object)).join('---\n'))
}

const merge = (into: unknown, from: unknown): boolean => {
  if (!isYaml(into)) return false
  Object.assign(into, from)
  return true
}
/** Merges into the parameters of the first filter whose class name ends so. */
const mergeParams = (object: Yaml, className: string, params: unknown): boolean => {
  const urls = yamlAt(object, 'spec', 'urls')
  if (!Array.isArray(urls)) return false
  const filters = urls.flatMap((url) => yamlAt(url, 'filterChain') ?? [])
  const filter = filters.find((one) => String(yamlAt(one, 'className')).endsWith(className))
  return merge(yamlAt(filter, 'params'), params)
}
const workflowWith = (name: string, tasks: unknown): string =>
  stringify({
    apiVersion: 'openunison.tremolo.io/v1',
    kind: 'Workflow',
    metadata: { name },
    spec: { label: name, inList: true, orgId: 'example', tasks },
  })
const approval = {
  taskType: 'approval',
  label: 'A request',
  emailTemplate: 'A request waits.',
  mailAttr: 'mail',
  failureEmailSubject: 'Denied',
  failureEmailMsg: 'Denied',
  approvers: [{ scope: 'dn', constraint: 'uid=grace,ou=people,o=Tremolo' }],
}

/** Where the first line of a fragment says that it belongs. */
const places: Readonly<Record<string, (config: string, fragment: string, name: string) => void>> = {
  'tasks of a workflow': (config, fragment, name) =>
    writeFileSync(join(config, `${name}.yaml`), workflowWith(name, parse(fragment))),
  'fields of the approval': (config, fragment, name) =>
    writeFileSync(join(config, `${name}.yaml`), workflowWith(name, [{ ...approval, ...parse(fragment) }])),
  'params of filters.Main': (config, fragment) =>
    changeObjects(join(config, 'portal.yaml'), (object) => mergeParams(object, '.ScaleMain', parse(fragment))),
  'params of filters.Register': (config, fragment) =>
    changeObjects(join(config, 'portal.yaml'), (object) => mergeParams(object, '.ScaleRegister', parse(fragment))),
  'params of filters.ScimGateway': (config, fragment) =>
    changeObjects(join(config, 'people.yaml'), (object) => mergeParams(object, '.Scim', parse(fragment))),
  'spec of the chain': (config, fragment) =>
    changeObjects(
      join(config, 'login.yaml'),
      (object) => yamlAt(object, 'metadata', 'name') === 'login' && merge(object['spec'], parse(fragment)),
    ),
  'cookieConfig of the application': (config, fragment) =>
    changeObjects(
      join(config, 'portal.yaml'),
      (object) =>
        yamlAt(object, 'metadata', 'name') === 'portal' &&
        merge(yamlAt(object, 'spec', 'cookieConfig'), parse(fragment)),
    ),
  'mappings of the issuer': (config, fragment) =>
    changeObjects(join(config, 'login.yaml'), (object) => {
      const entries = yamlAt(object, 'spec', 'urls', 0, 'idp', 'mappings', 'map')
      if (!Array.isArray(entries)) return false
      entries.push(...parse(fragment))
      return true
    }),
  'values.yaml': (config, fragment, name) => writeFileSync(join(config, `${name}.yaml`), fragment),
}

function place(config: string, block: string, name: string): void {
  const [, where] = /^# (.*)\n/.exec(block) ?? []
  if (where !== undefined) {
    const put = places[where]
    if (put === undefined) throw new Error(`${page}: no place "${where}" in this test`)
    put(config, block, name)
  } else {
    writeFileSync(join(config, `${name}.yaml`), block)
  }
  // Values of secrets, which a reader has.
  for (const [, secret = '', key = ''] of block.matchAll(/secretName: ([\w-]+), secretKey: ([\w-]+)/g)) {
    mkdirSync(join(config, 'secrets', secret), { recursive: true, mode: 0o700 })
    writeFileSync(join(config, 'secrets', secret, key), 'https://hooks.example.com/secret', { mode: 0o600 })
  }
}

/** A request that no one may decide, so that there is an incident. */
const orphan = `${workflowWith('orphan', [
  { ...approval, approvers: [{ scope: 'dn', constraint: 'uid=no-one,ou=people,o=Tremolo' }] },
])}---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: orphans }
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /orphans
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.Register
          params:
            workflowName: orphan
            uidAttributeName: userName
            attributeNames: [userName]
            userName.displayName: Login
            frontPage.title: Orphans
            frontPage.text: No one decides.
            homeURL: /portal
            logoutURL: /main/logout
`

describe('the recipe', () => {
  const base = mkdtempSync(join(tmpdir(), 'gatehouse-recipes-'))
  afterAll(() => rmSync(base, { recursive: true, force: true }))

  // A gateway with a request, an incident and a journal, which is stopped again: the commands read its data folder.
  beforeAll(async () => {
    const [config, dataFolder] = [join(base, 'config'), join(base, 'data')]
    cpSync('examples/quickstart', config, { recursive: true })
    writeFileSync(join(config, 'orphan.yaml'), orphan)
    const gateway = await startGatewayProcess({ config, dataFolder })
    try {
      const submit = async (path: string, attributes: Readonly<Record<string, string>>): Promise<void> => {
        const body = JSON.stringify({ attributes, reason: 'New here' })
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(`${gateway.url}${path}/submit`, { method: 'POST', headers, body })
        expect(answer.status, await answer.text()).toBeLessThan(300)
      }
      await submit('/orphans', { userName: 'joan' })
      await submit('/register', {
        userName: 'dorothy',
        mail: 'dorothy@example.com',
        givenName: 'Dorothy',
        sn: 'Vaughan',
      })
      await until(async () => {
        const list = await commandOutput('workflow', 'list', '--data', dataFolder, '--output', 'json')
        return list.includes('"waiting"') && list.includes('"incident"')
      }, 60_000)
      // An export refuses unsent mail.
      await until(async () => {
        const states = ['--state', 'queued', '--state', 'sent']
        const list = await commandOutput('mail', 'list', '--data', dataFolder, ...states, '--output', 'json')
        return list.includes('"sent"') && !list.includes('"queued"')
      }, 60_000)
    } finally {
      await gateway.stop()
    }
  }, 120_000)

  test.each(recipes)(
    '$title',
    async ({ title, yaml, commands }) => {
      const { after = [], first = [], values = {}, codes = [], prints = [], notRun = {} } = trials[title] ?? {}
      const folder = mkdtempSync(join(tmpdir(), 'gatehouse-recipe-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      for (const part of ['config', 'data']) cpSync(join(base, part), join(folder, part), { recursive: true })
      mkdirSync(join(folder, 'backups'))
      const config = join(folder, 'config')
      const blocks = [...after.flatMap((other) => recipeOf(other).yaml), ...yaml]
      for (const [at, block] of blocks.entries()) place(config, block, `recipe-${at}`)
      if (blocks.length > 0) {
        const { code, stdout, stderr } = await runCommand(['check', '--config', config, '--strict'])
        expect(code, `${stdout}${stderr}`).toBe(0)
      }

      let printed = ''
      for (const line of [...first, ...commands]) {
        if (Object.keys(notRun).some((text) => line.includes(text))) {
          await expectKnownOptions(line)
          continue
        }
        let filled = line
        for (const [name, value] of Object.entries(values)) {
          if (new RegExp(`\\b${name}\\b`).test(filled)) filled = filled.replace(name, await value(folder))
        }
        printed += await run(filled, folder, codes)
      }
      for (const text of prints) expect(printed).toContain(text)
    },
    60_000,
  )
})

/** The words of a line, without quotes. */
const wordsOf = (line: string): string[] =>
  Array.from(line.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, plain]) => quoted ?? plain ?? '')

/** The paths of the page, in the folder of the test. */
const pathOf = (word: string, folder: string): string =>
  ['config', 'data', 'restored', 'plugins', 'my-gateway', 'audit.jsonl'].includes(word) || word.startsWith('/backups/')
    ? join(folder, word)
    : word

async function run(line: string, folder: string, codes: readonly number[]): Promise<string> {
  const [command = '', file] = line.split(' > ')
  const [program, ...args] = wordsOf(command).map((word) => pathOf(word, folder))
  expect(program, `${line}: the test runs commands of gatehouse only. Give a reason in notRun.`).toBe('gatehouse')
  const asksForPassword = /^user (?:add|passwd) /.test(args.join(' '))
  const { code, stdout, stderr } = await runCommand(args, asksForPassword ? 'correct horse battery\n' : undefined)
  expect([0, ...codes], `${line}\n${stdout}${stderr}`).toContain(code)
  if (file !== undefined) writeFileSync(pathOf(file, folder), stdout)
  return stdout + stderr
}

/** A command that is not run has at least options that exist. */
async function expectKnownOptions(line: string): Promise<void> {
  const words = wordsOf(line)
  const at = words.indexOf('gatehouse')
  if (at === -1 || ['sudo', 'kubectl', 'helm'].includes(words[0] ?? '')) return
  const { stdout, stderr } = await runCommand([words[at + 1] ?? '', '--help'])
  for (const option of words.filter((word) => word.startsWith('--'))) {
    expect(`${stdout}${stderr}`, line).toMatch(new RegExp(`^ +${option}[ \\n]`, 'm'))
  }
}
