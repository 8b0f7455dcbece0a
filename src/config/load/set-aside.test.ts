import { describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { Routes } from '#requests/routing/routes.ts'
import { checkText, loadText } from '#testing/modules/check-text.ts'
import { buildConfiguration } from './load.ts'
import { lostObjects, summarize, titleOf } from './set-aside.ts'

const object = (kind: string, name: string, spec: string): string =>
  `---\napiVersion: openunison.tremolo.io/v1\nkind: ${kind}\nmetadata: { name: ${name} }\nspec: ${spec}\n`

const target = (name: string, className = 'targets.Database'): string =>
  object('Target', name, `{ className: ${className} }`)
const workflow = (name: string, task: string): string => object('Workflow', name, `{ tasks: [${task}] }`)
const provision = (name: string): string => `{ taskType: provision, sync: true, target: ${name}, attributes: [mail] }`
const call = (name: string): string => `{ taskType: callWorkflow, name: ${name} }`
const application = (name: string, uri: string, url = ''): string =>
  object(
    'Application',
    name,
    `{ urls: [{ hosts: ['*'], uri: ${uri}, azRules: [{ scope: filter, constraint: (a=b) }]${url} }] }`,
  )
const development = ", filterChain: [{ className: filters.DevelopmentIssuer, params: { issuer: 'http://127.0.0.1' } }]"

const load = (text: string) => loadText(text, catalog)

/** The titles of the objects that are set aside, and of their causes. */
const aside = (text: string): [string, string][] =>
  load(text).found.flatMap((found): [string, string][] =>
    found.cause === undefined ? [] : [[titleOf(found), found.cause.object]],
  )

describe('what is set aside', () => {
  test('an object with an error, and everything that needs it, with the root as the cause', () => {
    const text =
      target('good') +
      target('bad', 'targets.Databse') +
      workflow('direct', provision('bad')) +
      workflow('caller', call('direct')) +
      workflow('other', provision('good'))
    expect(aside(text)).toEqual([
      ['Target "bad"', 'Target "bad"'],
      ['Workflow "direct"', 'Target "bad"'],
      ['Workflow "caller"', 'Target "bad"'],
    ])
    const { configuration } = load(text)
    expect([...(configuration?.workflows.keys() ?? [])]).toEqual(['other'])
    expect([...(configuration?.targets.keys() ?? [])]).toEqual(['good'])
  })

  test('a name that nothing has is the cause of all that need it', () => {
    const text = workflow('a', provision('crm')) + workflow('b', provision('crm')) + workflow('c', call('a'))
    expect(aside(text)).toEqual([
      ['Workflow "a"', 'target "crm"'],
      ['Workflow "b"', 'target "crm"'],
      ['Workflow "c"', 'target "crm"'],
    ])
    expect(summarize(load(`${text}${target('good')}### values.yaml\nA: b\n`))).toEqual([
      '3 set aside because of target "crm", which does not exist: Workflow "a", Workflow "b", Workflow "c"',
      '1 object served, 3 set aside',
    ])
  })

  test('an application whose chain or rule cannot be built keeps its address, without rules and filters', () => {
    const chain = object(
      'AuthenticationChain',
      'login',
      '{ level: 1, authMechs: [{ name: none, required: required }] }',
    )
    const text =
      chain +
      application('guarded', '/guarded', `, authChain: login${development}`) +
      application('custom', '/custom', development).replace(
        'scope: filter, constraint: (a=b)',
        'scope: custom, constraint: az',
      ) +
      application('open', '/open', development)
    expect(aside(text)).toEqual([
      ['AuthenticationChain "login"', 'mechanism "none"'],
      ['Application "guarded"', 'mechanism "none"'],
      ['Application "custom"', 'custom authorization "az"'],
    ])
    const { applications = [], chains } = load(text).configuration ?? {}
    expect(chains?.size).toBe(0)
    const closed = { rules: [], filters: [], chain: undefined }
    expect(applications).toMatchObject([
      {
        name: 'guarded',
        setAside: { reason: 'mechanism "none": no mechanism named "none"', mayPass: false },
        urls: [{ uri: '/guarded', ...closed }],
      },
      { name: 'custom', urls: [{ uri: '/custom', ...closed }] },
      { name: 'open', urls: [{ uri: '/open' }] },
    ])
    expect(applications[2]?.setAside).toBeUndefined()
    expect(applications[2]?.urls[0]?.filters).toHaveLength(1)
  })

  test('all members of a circle', () => {
    const text = workflow('a', call('b')) + workflow('b', call('a')) + workflow('c', call('b'))
    expect(aside(text).map(([name]) => name)).toEqual(['Workflow "a"', 'Workflow "b"', 'Workflow "c"'])
  })

  test('all claimants of one name, address, uuid or report name', () => {
    const org = (name: string, uuid: string): string => object('Org', name, `{ uuid: '${uuid}' }`)
    expect(aside(org('a', '1') + org('a', '2') + org('b', '3'))).toHaveLength(2)
    expect(aside(org('a', '1') + org('b', '1') + org('c', '3'))).toHaveLength(2)
    const urls = application('one', '/x', development) + application('two', '/x', development)
    expect(aside(urls + application('three', '/y', development))).toEqual([
      ['Application "one"', 'Application "two"'],
      ['Application "two"', 'Application "two"'],
    ])
  })

  test('a child of an org, its links and reports, but not a workflow that only names it', () => {
    const text =
      object('Org', 'root', '{ uuid: r, color: red }') +
      object('Org', 'child', '{ uuid: c, parent: r }') +
      object('PortalUrl', 'link', "{ org: c, label: l, url: 'https://x.test/' }") +
      object('Workflow', 'listed', '{ inList: true, orgId: r, tasks: [] }')
    expect(aside(text)).toEqual([
      ['Org "root"', 'Org "root"'],
      ['Org "child"', 'Org "root"'],
      ['PortalUrl "link"', 'Org "root"'],
    ])
  })

  test('one that needs an optional object is served without it', () => {
    const text =
      object('Notifier', 'default', '{ className: notifiers.Smpt }') +
      object('AuditSink', 'siem', '{ className: auditSinks.Fil }') +
      workflow('w', '')
    const { configuration } = load(text)
    expect([...(configuration?.workflows.keys() ?? [])]).toEqual(['w'])
    expect(configuration?.setAside?.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'Notifier default',
      'AuditSink siem',
    ])
  })

  test('a document or file that cannot be read; the rest is served', () => {
    const text = `### broken.yaml\napiVersion: openunison.tremolo.io/v1\nkind: Application\nmetadata: { name: broken }\nspec:\n  urls:\n    - hosts: ['*']\n      uri: /broken\n      uri: /again\n### list.yaml\n- a\n### kind.yaml\napiVersion: v1\nkind: Ingress\nmetadata: { name: i }\n### good.yaml\n${workflow('w', '')}`
    expect(aside(text).map(([name]) => name)).toEqual(['Application "broken"', 'Ingress "i"', 'document list.yaml'])
    const { configuration } = load(text)
    expect([...(configuration?.workflows.keys() ?? [])]).toEqual(['w'])
    expect(configuration?.applications).toMatchObject([{ name: 'broken', setAside: { mayPass: false } }])
    expect(configuration?.applications[0]?.urls).toHaveLength(1)
  })

  test('a broken part of the directory fails instead of being empty', async () => {
    const insert = (name: string, className: string, suffix: string): string =>
      object('DirectoryInsert', name, `{ className: ${className}, suffix: '${suffix}' }`)
    const { configuration } = load(
      insert('people', 'directory.Database', 'ou=people,o=Tremolo') +
        insert('ldap', 'directory.Ldpa', 'ou=ldap,o=Tremolo'),
    )
    const [ldap] = configuration?.inserts ?? []
    expect(configuration?.inserts.map(({ name, suffix }) => `${name} ${suffix}`)).toEqual([
      'ldap ou=ldap,o=Tremolo',
      'people ou=people,o=Tremolo',
    ])
    const created = await ldap?.insert.create({} as never)
    await expect(created?.members(ldap?.suffix as never, 1)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    const unknown = load(insert('only', 'directory.Database', 'nowhere')).configuration?.inserts[0]
    expect(unknown?.suffix.toString()).toBe('o=Tremolo')
  })

  test('a part of the directory within the root of a chain is a tree of its own, served or not', () => {
    const insert = (name: string, className: string): string =>
      object('DirectoryInsert', name, `{ className: ${className}, suffix: 'ou=${name},o=Data' }`)
    const inserts = insert('good', 'directory.Database') + insert('bad', 'directory.Databse')
    const chain =
      object('AuthenticationMechanism', 'none', '{ className: auth.Anonymous, uri: /auth/none }') +
      object(
        'AuthenticationChain',
        'login',
        '{ level: 1, root: o=Data, authMechs: [{ name: none, required: required }] }',
      )
    expect(aside(inserts + chain).map(([title]) => title)).toEqual(['DirectoryInsert "bad"'])
    const suffixes = load(inserts + chain).configuration?.inserts.map(({ suffix }) => suffix.toString())
    expect(suffixes).toEqual(['ou=bad,o=Data', 'ou=good,o=Data'])
    expect(aside(inserts).map(([title]) => title)).toEqual(['DirectoryInsert "good"', 'DirectoryInsert "bad"'])
  })

  test('a Trust, without the identity provider that it belongs to', () => {
    const trust = (name: string, more: string): string =>
      object(
        'Trust',
        name,
        `{ clientId: ${name}, publicEndpoint: true, redirectURI: ['https://${name}.test/']${more} }`,
      )
    const text =
      object('AuthenticationMechanism', 'none', '{ className: auth.Anonymous, uri: /auth/none }') +
      object('AuthenticationChain', 'login', '{ level: 1, authMechs: [{ name: none, required: required }] }') +
      trust('wiki', ', authChainName: login') +
      trust('chat', ', authChainName: lost') +
      trust('mail', '') +
      object(
        'Application',
        'idp',
        `{ cookieConfig: { sessionCookieName: s }, urls: [{ hosts: [x.test], uri: /auth/idp/people, azRules: [{ scope: dn, constraint: o=Tremolo }], idp: { className: idp.OpenIDConnect, mappings: { map: [{ targetAttributeName: sub, sourceType: user, targetAttributeSource: uid }] } } }] }`,
      )
    expect(aside(text)).toEqual([
      ['Trust "chat"', 'chain "lost"'],
      ['Trust "mail"', 'Trust "mail"'],
    ])
    const { issuers = [], applications = [], trusts } = load(text).configuration ?? {}
    expect(issuers.map(({ deviceChain, trusts }) => [deviceChain, trusts.map(({ clientId }) => clientId)])).toEqual([
      ['login', ['wiki']],
    ])
    expect([...(trusts?.keys() ?? [])]).toEqual(['wiki'])
    const [filter] = applications[0]?.urls[0]?.filters ?? []
    expect(filter?.chains).toEqual(['login'])
    expect(JSON.stringify(filter?.summary)).not.toContain('chat')
  })

  test('an object that could not be created, with what needs it', () => {
    const loaded = load(target('t') + workflow('w', provision('t')) + workflow('other', ''))
    const at = loaded.configuration?.targets.get('t')?.at ?? ''
    const rest = loaded.without?.([{ at, message: 'cannot be created: no memory' }])
    expect(rest?.found.flatMap((one) => (one.cause === undefined ? [] : [titleOf(one)]))).toEqual([
      'Target "t"',
      'Workflow "w"',
    ])
    expect([...(rest?.configuration?.workflows.keys() ?? [])]).toEqual(['other'])
    expect(rest?.issues.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
      'cannot be created: no memory',
    ])
    expect(rest?.without?.([{ at, message: 'again' }])).toBeUndefined()
    expect(loaded.without?.([{ at: 'elsewhere.yaml:1:1', message: 'x' }])).toBeUndefined()
  })

  describe('of the token service', () => {
    const endpoint = (name: string, more = ''): string =>
      `{ name: ${name}, audience: x, path: /sts/${name}, issuer: { host: ${name}.test }, azRules: [{ scope: filter, constraint: (namespace=a) }], clusters: [k8s]${more} }`
    const block = (endpoints: readonly string[], more = ''): string =>
      `### values.yaml\nHOST: x.test\nsts: { endpoints: [${endpoints.join(', ')}]${more} }\n### w.yaml\n${workflow('w', '')}`
    const served = (text: string): string[] | undefined =>
      load(text).configuration?.stsEndpoints.map(({ endpoint: { name } }) => name)
    const closed = (text: string): [string, boolean][] | undefined =>
      load(text).configuration?.applications.flatMap(({ urls, setAside }) =>
        urls.map(({ uri }): [string, boolean] => [uri, setAside !== undefined]),
      )

    test('only the endpoint that is wrong, which keeps its addresses', () => {
      const text = block([
        endpoint('a'),
        endpoint('b', ', nonsense: 1'),
        endpoint('c', ', preset: azure, algorithm: ES256'),
      ])
      expect(aside(text)).toEqual([
        ['token endpoint "b"', 'token endpoint "b"'],
        ['token endpoint "c"', 'token endpoint "c"'],
      ])
      expect(served(text)).toEqual(['a'])
      expect(closed(text)).toEqual([
        ['/sts/a/token', false],
        ['/sts/a/issuer-docs', false],
        ['/sts/b/token', true],
        ['/sts/b/issuer-docs', true],
        ['/sts/c/token', true],
        ['/sts/c/issuer-docs', true],
      ])
      expect(load(text).configuration?.workflows.has('w')).toBe(true)
    })

    test('an endpoint that can hardly be read', () => {
      const text = block([endpoint('a'), '{ name: b, path: /sts/b, audience: [], issuer: 7 }', 'text'])
      expect(served(text)).toEqual(['a'])
      expect(closed(text)).toContainEqual(['/sts/b/token', true])
      expect(aside(text).map(([name]) => name)).toEqual(['token endpoint "b"', 'token endpoint "(unnamed)"'])
    })

    test('an endpoint whose cluster is set aside', () => {
      const text = `${block([endpoint('a'), endpoint('b', '').replace('[k8s]', '[west]')])}${target('west', 'targets.Kubernets')}`
      expect(served(text)).toEqual(['a'])
      expect(aside(text)).toContainEqual(['token endpoint "b"', 'Target "west"'])
    })

    test('both endpoints that claim the same', () => {
      const text = block([endpoint('a'), endpoint('b').replace('b.test', 'a.test'), endpoint('c')])
      expect(served(text)).toEqual(['c'])
      expect(aside(text).map(([name]) => name)).toEqual(['token endpoint "a"', 'token endpoint "b"'])
    })

    test('an endpoint and the application with its address', () => {
      const text = block([endpoint('a'), endpoint('b')]) + application('app', '/sts/b/token', development)
      expect(served(text)).toEqual(['a'])
      expect(aside(text).map(([name]) => name)).toEqual(['token endpoint "b"', 'Application "app"'])
    })

    test.each([', hosts: [":"]', ', nonsense: 1', ', issuers: [{}]'])('all endpoints for an error in %j', (more) => {
      const text = block([endpoint('a')], more)
      expect(served(text)).toEqual([])
      expect(aside(text).map(([name]) => name)).toEqual(['values values.yaml', 'token endpoint "a"'])
      expect(closed(text)).toEqual([
        ['/sts/a/token', true],
        ['/sts/a/issuer-docs', true],
      ])
    })

    test('an endpoint that could not be created', () => {
      const loaded = load(block([endpoint('a'), endpoint('b')]))
      const at = loaded.configuration?.stsEndpoints[1]?.at ?? ''
      const rest = loaded.without?.([{ at, message: 'cannot be created: no memory' }])
      expect(rest?.configuration?.stsEndpoints.map(({ endpoint: { name } }) => name)).toEqual(['a'])
    })

    test('a reload that would lose an endpoint is noticed', () => {
      const [before, after] = [block([endpoint('a'), endpoint('b')]), block([endpoint('a'), endpoint('b', ', x: 1')])]
      expect(lostObjects(load(before).found, load(after).found).map(titleOf)).toEqual(['token endpoint "b"'])
    })
  })
})

describe('nothing is served with less protection', () => {
  const open = application('open', '/open', development)
  const withRule = (constraint: string): string => open.replace('(a=b)', `'${constraint}'`)

  test.each([
    ['### more.yaml\n- GROUP: x', 'a list'],
    ['### more.yaml\nspec: { GROUP: x }', 'a document without a kind'],
    ['### more.yaml\napiVersion: v1\nkind: OpenUnison\nmetadata: { name: o }\n---\n"', 'an unclosed quote'],
  ])('while %j may have a value, its default does not replace it (%s)', (file) => {
    const text = (value: string) => `${file}\n### app.yaml\n${withRule(value)}`
    expect(aside(text('#[GROUP:(uid=*)]'))).toContainEqual(['Application "open"', 'Application "open"'])
    expect(aside(text('(uid=a)'))).not.toContainEqual(['Application "open"', 'Application "open"'])
    expect(aside(withRule('#[GROUP:(uid=*)]'))).toEqual([])
  })

  test('a file that could not be read counts like that', () => {
    const sources = {
      files: [{ name: 'app.yaml', text: withRule('#[GROUP:(uid=*)]') }],
      keys: new Map(),
      problems: [{ name: 'more.yaml', message: 'cannot be read' }],
    }
    const { configuration } = buildConfiguration(sources, { folder: '/nowhere', catalog, environment: {} })
    expect(configuration?.applications).toMatchObject([{ name: 'open', setAside: { mayPass: false } }])
    const known = buildConfiguration(sources, { folder: '/nowhere', catalog, environment: { GROUP: '(uid=a)' } })
    expect(known.configuration?.applications[0]?.setAside).toBeUndefined()
  })

  test.each([
    ['AuthenticationChan', 'a misspelled kind'],
    ['Chain', 'an unknown kind'],
  ])('a chain "anon" of the kind %s is not replaced by the built-in one (%s)', (kind) => {
    const guarded = application('guarded', '/guarded', `, authChain: anon${development}`)
    expect(aside(guarded)).toEqual([])
    expect(aside(object(kind, 'anon', '{}') + guarded)).toContainEqual(['Application "guarded"', 'chain "anon"'])
  })

  test('tests of token policies do not hide the built-in chain', () => {
    const guarded = application('guarded', '/guarded', `, authChain: anon${development}`)
    expect(aside(`### policy.yaml\ntests: []\n### app.yaml\n${guarded}`)).toEqual([])
  })

  test.each([
    ["hosts: ['*']", "hosts: ['#[HOST]']"],
    ["hosts: ['*']", "hosts: ['x.#[HOST]']"],
    ['uri: /open', "uri: '/open/#[PART]'"],
    ['constraint: (a=b)', "constraint: '(a=#[VALUE])'"],
  ])('%s without its value, as %s, sets the application aside', (before, after) => {
    expect(aside(open.replace(before, after)).map(([name]) => name)).toEqual(['Application "open"'])
  })

  test.each([
    [object('AuthenticationMechanism', 'm', "{ className: auth.Anonymous, uri: /auth/m, init: { userName: '#[X]' } }")],
    [object('CustomAuthorization', 'c', "{ className: authorizations.AlwaysFail, params: { a: '#[X]' } }")],
    [object('Trust', 't', "{ clientId: t, publicEndpoint: true, redirectURI: ['https://t.test/', '#[X]'] }")],
    ["### values.yaml\nsts: { endpoints: [{ name: a, path: /a, audience: '#[X]' }] }"],
  ])('%j is set aside as a whole, since every part of it may decide who gets in', (text) => {
    const { issues } = load(text)
    expect(issues.map(({ level, message }) => `${level} ${message}`).join('\n')).toMatch(
      /error #\[X\].*controls access/,
    )
  })

  test('the name of a secret may end with a value that is not set', () => {
    const chain =
      "authMechs: [{ name: m, required: required, secretParams: [{ name: token, secretName: 's#[X]', secretKey: k }] }]"
    const text =
      object('AuthenticationMechanism', 'm', '{ className: auth.BearerToken, uri: /auth/m, init: { userName: u } }') +
      object('AuthenticationChain', 'c', `{ level: 1, ${chain} }`)
    const about = load(text).issues.filter(({ message }) => message.includes('#[X]'))
    expect(about.map(({ level }) => level)).toEqual(['warning'])
  })

  test.each([
    "params: { rules: '#[X]' }",
    "params: [{ name: rules, value: '#[X]' }]",
    "params: { rules: ['a', '#[X]'] }",
    "params: [{ name: readOnly, value: '#[X]' }]",
  ])('a filter with %s is not served without the value', (params) => {
    const filter = `, filterChain: [{ className: filters.DevelopmentIssuer, ${params} }]`
    expect(checkText(application('a', '/a', filter), catalog).join('\n')).toMatch(/#\[X\].*controls access/)
  })

  test('the address of an application is reserved even if its hosts are no list', () => {
    const { configuration } = load(open.replace("hosts: ['*']", 'hosts: X.test'))
    expect(configuration?.applications).toMatchObject([
      { setAside: { mayPass: false }, urls: [{ hosts: ['x.test'], uri: '/open' }] },
    ])
  })

  test.each([['host: [x.test]'], ["hosts: ['#[X]']"], ['hosts: [1]'], ['hosts: {}']])(
    'with %s, which names no host, its address is reserved at all of them',
    (hosts) => {
      const { configuration } = load(open.replace("hosts: ['*']", hosts))
      expect(configuration?.applications).toMatchObject([
        { setAside: { mayPass: false }, urls: [{ hosts: ['*'], uri: '/open' }] },
      ])
    },
  )

  test('an unclosed quote does not hide the documents after it', () => {
    const broken = object('Workflow', 'broken', '{ label: "open }')
    const { configuration, issues } = load(broken + open + application('closed', '/open/closed', ', authChain: none'))
    expect(configuration?.applications.map(({ name, setAside }) => [name, setAside !== undefined])).toEqual([
      ['open', false],
      ['closed', true],
    ])
    expect(issues.find(({ path }) => path === 'spec.urls[0].authChain')).toMatchObject({ line: 15 })
  })
})

describe('an error of the whole', () => {
  const served = (text: string): boolean =>
    load(`${text}\n### w.yaml\n${workflow('w', '')}`).configuration !== undefined

  test('a values document that cannot be read, or gives a value twice', () => {
    expect(served('### values.yaml\nA: 1')).toBe(true)
    expect(served('### values.yaml\nA: [')).toBe(false)
    expect(served('### values.yaml\n- A')).toBe(false)
    expect(served('### other.yaml\nA: 1\nA: 2')).toBe(false)
    expect(served('### values.yaml\nA: 1\n### other.yaml\nA: 2')).toBe(false)
    expect(served('### values.yaml\ndirectoryRoot: nowhere')).toBe(false)
    expect(summarize(load('### values.yaml\nA: ['))).toEqual([
      'nothing is served: an error concerns the whole configuration',
    ])
  })
})

describe('objects that a change would lose', () => {
  const found = (text: string) => load(text).found
  const lost = (before: string, after: string): string[] => lostObjects(found(before), found(after)).map(titleOf)

  test('those that are set aside, also because of another object', () => {
    const before = target('t') + workflow('w', provision('t'))
    expect(lost(before, before.replace('targets.Database', 'targets.Databse'))).toEqual(['Target "t"', 'Workflow "w"'])
    expect(lost(before, workflow('w', provision('t')))).toEqual(['Workflow "w"'])
    expect(lost(before, target('t'))).toEqual([])
    expect(lost(before, before + workflow('new', provision('none')))).toEqual([])
  })

  test('one whose kind is misspelled now', () => {
    const before = workflow('a', '') + workflow('b', '')
    expect(lost(before, before.replace('kind: Workflow', 'kind: Workflw'))).toEqual(['Workflow "a"'])
  })

  test('those of a file that can no longer be read', () => {
    const file = (text: string): string => `### a.yaml\n${text}\n### b.yaml\n${workflow('b', '')}`
    expect(lost(file(workflow('a', '')), file('- nothing'))).toEqual(['Workflow "a"'])
    expect(lost(file(workflow('a', '')), file(''))).toEqual([])
  })

  test('not one that is set aside already', () => {
    const broken = workflow('w', provision('none'))
    expect(lost(broken, broken)).toEqual([])
  })
})

test('applications in set-aside/ keep their addresses, unless another application has the same', () => {
  const reserved = [
    {
      name: 'set-aside/a.yaml',
      text: application('secret', '"/portal/#[PART]"', ', filterChain: [{ className: no.Class }]'),
    },
    { name: 'set-aside/b.yaml', text: application('portal', '/portal') },
    { name: 'set-aside/c.yaml', text: `${target('bad', 'targets.Databse')}nonsense` },
  ]
  const files = [{ name: 'portal.yaml', text: application('portal', '/portal', development) }]
  const sources = { files, reserved, keys: new Map<string, string>(), problems: [] }
  const options = { folder: '/nowhere', catalog, environment: { PART: 'secret' }, strictSecrets: false }
  const { configuration, issues, found, hash } = buildConfiguration(sources, options)
  expect(issues).toEqual([])
  expect(found.map(titleOf)).toEqual(['Application "portal"'])
  const routes = new Routes((configuration?.applications ?? []) as unknown as ConstructorParameters<typeof Routes>[0])
  const answers = (path: string) => {
    const { name, setAside } = routes.find('acme.test', path)?.application ?? {}
    return [name, setAside?.reason]
  }
  expect(answers('/portal')).toEqual(['portal', undefined])
  expect(answers('/portal/other')).toEqual(['portal', undefined])
  expect(answers('/portal/secret/x')).toEqual(['secret', 'its place in set-aside/'])
  expect(buildConfiguration({ ...sources, reserved: [] }, options).hash).not.toBe(hash)
})

test('what is reported of an object has no values of secrets, also if it cannot be created', () => {
  const environment = { BIND_PASSWORD: 'hunter2' }
  const text =
    target('bad', "targets.ArgoCD, params: { url: 'https://u:#[BIND_PASSWORD]@[', token: x }") +
    application('kept', '/kept', development)
  const loaded = loadText(text, catalog, { environment })
  const [object] = loaded.found.filter(({ cause }) => cause !== undefined)
  expect(object?.cause?.message).toContain('"https://u:#[BIND_PASSWORD]@[" is not an absolute URL')
  const at = loaded.configuration?.applications[0]?.at ?? ''
  const later = loaded.without?.([{ at, message: 'cannot be created: no server at hunter2' }])
  expect(JSON.stringify([later?.found, later?.issues])).toContain('no server at #[BIND_PASSWORD]')
  expect(JSON.stringify([later?.found, later?.issues, later?.configuration?.applications])).not.toContain('hunter2')
})
