import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { configResources } from '#config/sources/cluster-documents.ts'
import { gatehouse, until } from '#testing/gateway/gateway-process.ts'
import { defineAll, defineOpenUnison, objectPath, tokenKubeconfig } from '#testing/kubernetes/custom-resources.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'

const run = promisify(execFile)
const group = 'openunison.tremolo.io'
const password = 'a secret that no one may see'

/** Kinds of OpenUnison that a gateway does not have. */
const definition = (kind: string, version: string) => {
  const plural = `${kind.toLowerCase()}s`
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, singular: kind.toLowerCase(), kind },
      versions: [{ name: version, served: true, storage: true, schema }],
    },
  }
}

/** The virtual directory of a portal. */
const myvd = `server.nameSpaces=myvdroot,shadowUsers,activedirectory
server.myvdroot.chain=root
server.myvdroot.nameSpace=o=Tremolo
server.myvdroot.root.className=net.sourceforge.myvd.inserts.RootObject
server.shadowUsers.chain=mapping,api
server.shadowUsers.nameSpace=ou=shadow,o=Tremolo
server.shadowUsers.mapping.className=net.sourceforge.myvd.inserts.mapping.AttributeMapper
server.shadowUsers.mapping.config.mapping=mail=email,givenName=first_name,sn=last_name
server.shadowUsers.api.className=com.tremolosecurity.myvd.K8sCrdInsert
server.activedirectory.chain=ldap
server.activedirectory.nameSpace=ou=activedirectory,o=Data
server.activedirectory.ldap.className=com.tremolosecurity.proxy.myvd.inserts.ad.ADLdapInsert
server.activedirectory.ldap.config.host=ad.acme.test
server.activedirectory.ldap.config.port=636
server.activedirectory.ldap.config.type=ldaps
server.activedirectory.ldap.config.remoteBase=dc=acme,dc=test
server.activedirectory.ldap.config.proxyDN=cn=reader,dc=acme,dc=test
server.activedirectory.ldap.config.proxyPass=#[AD_BIND_PASSWORD]
`

interface ConfigObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec?: unknown
  readonly data?: Readonly<Record<string, string>>
}

const rules = [{ scope: 'dn', constraint: 'o=Tremolo' }]

onKubernetes('gatehouse import of a namespace', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-kube-import-'))
  const kubeconfig = join(folder, 'kubeconfig')
  let namespace = ''

  const create = (kind: string, name: string, spec: object, path = objectPath(`${group}/v1`, kind, namespace)) =>
    cluster.must('POST', path, { apiVersion: path.split('/').slice(2, 4).join('/'), kind, metadata: { name }, spec })
  const importTo = (out: string, ...more: string[]) =>
    run(gatehouse, [
      'import',
      ...['--openunison', `kubernetes:${namespace}`, '--out', join(folder, out), '--kubeconfig', kubeconfig],
      ...more,
    ])
  const rbac = () => `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
  const grant = (name: string, rules: object[]) =>
    cluster.must('POST', `${rbac()}/roles`, { metadata: { name }, rules })

  beforeAll(async () => {
    await defineAll(cluster)
    await defineOpenUnison(cluster)
    await cluster.defineKind(definition('MessageListener', 'v1'), `/apis/${group}/v1/messagelisteners`)
    namespace = await cluster.namespace()
    await cluster.serviceAccount({ namespace, name: 'importer' })
    const plurals = [...configResources.map(({ plural }) => plural), 'openunisons', 'messagelisteners']
    await grant('importer', [
      { apiGroups: [group], resources: plurals, verbs: ['list'] },
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['orchestra-secrets-source'], verbs: ['get'] },
      { apiGroups: [''], resources: ['configmaps'], resourceNames: ['myvd'], verbs: ['get'] },
    ])
    await cluster.must('POST', `${rbac()}/rolebindings`, {
      metadata: { name: 'importer' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'importer' },
      subjects: [{ kind: 'ServiceAccount', name: 'importer', namespace }],
    })
    const token = await cluster.token({ namespace, name: 'importer' }, { seconds: 3600 })
    writeFileSync(kubeconfig, tokenKubeconfig(cluster, token))
    await cluster.must('POST', `/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: 'orchestra-secrets-source' },
      stringData: { DB_PASSWORD: password, NOT_NAMED: 'other' },
    })
    await create(
      'OpenUnison',
      'orchestra',
      {
        image: 'example.com/openunison:1',
        hosts: [{ names: [{ env_var: 'OU_HOST', name: 'portal.example.com' }] }],
        non_secret_data: [{ name: 'K8S_CLUSTER_NAME', value: 'one' }],
        secret_data: ['DB_PASSWORD'],
        source_secret: 'orchestra-secrets-source',
      },
      `/apis/${group}/v6/namespaces/${namespace}/openunisons`,
    )
    await create('PortalUrl', 'wiki', {
      label: 'Wiki of #[K8S_CLUSTER_NAME]',
      url: 'https://#[OU_HOST]/wiki',
      azRules: rules,
    })
    await create('Target', 'people', {
      className: 'com.tremolosecurity.provisioning.core.providers.BasicDB',
      params: Object.entries({
        driver: 'org.postgresql.Driver',
        url: 'jdbc:postgresql://db.example.com:5432/people',
        user: 'people',
        password: '#[DB_PASSWORD]',
        userTable: 'users',
        userPrimaryKey: 'id',
        userName: 'login',
        groupMode: 'None',
      }).map(([name, value]) => ({ name, value })),
      targetAttributes: [{ name: 'login', source: 'uid', sourceType: 'user' }],
    })
    await create('AuthenticationMechanism', 'saml2', {
      className: 'com.tremolosecurity.proxy.auth.SAML2Auth',
      uri: '/auth/saml',
    })
    await create('AuthenticationChain', 'enterprise', {
      level: 20,
      authMechs: [{ name: 'saml2', required: 'required' }],
    })
    await create('GroupMetaData', 'outside', { groupName: 'admins', externalName: 'cn=admins,dc=example,dc=com' })
  }, 180_000)

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('writes a folder that check accepts, with secrets on request, and says what is set aside', async () => {
    const { stdout } = await importTo('with', '--with-secrets')
    expect(stdout).toContain('3 of 5 objects are ready to serve, 2 are set aside')
    expect(stdout).toContain('AuthenticationMechanism saml2: spec.className')
    expect(stdout).toContain('depends on AuthenticationMechanism "saml2", which is set aside')
    expect(readFileSync(join(folder, 'with', 'groupmetadatas', 'outside.yaml'), 'utf8')).toContain(
      'cn=admins,dc=example',
    )
    expect(stdout).not.toContain(password)
    const secret = join(folder, 'with', 'secrets', 'orchestra-secrets-source', 'DB_PASSWORD')
    expect(readFileSync(secret, 'utf8')).toBe(password)
    expect(statSync(secret).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(folder, 'with', 'targets', 'people.yaml'), 'utf8')).not.toMatch(/uid:|resourceVersion/)
    expect((await run(gatehouse, ['check', '--strict', '--config', join(folder, 'with')])).stdout).toBe('')
  }, 60_000)

  describe('of a whole portal', () => {
    const sets = ['portal', 'namespaces', 'privileged-access', 'token-service']
    const logins = ['login-active-directory', 'login-openid-connect', 'login-github']
    const read = (names: readonly string[]) =>
      names.flatMap((name) =>
        parseAllDocuments(readFileSync(`test/openunison-portal/${name}.yaml`, 'utf8')).flatMap(
          (document) => (document.toJS() as ConfigObject | null) ?? [],
        ),
      )
    /** What the charts add to these objects. */
    const others: ConfigObject[] = [
      {
        apiVersion: `${group}/v6`,
        kind: 'OpenUnison',
        metadata: { name: 'orchestra' },
        spec: {
          hosts: [{ names: [{ env_var: 'OU_HOST', name: 'portal.acme.test' }] }],
          secret_data: ['AD_BIND_PASSWORD'],
          source_secret: 'orchestra-secrets-source',
        },
      },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'orchestra-secrets-source' },
        data: { AD_BIND_PASSWORD: Buffer.from(password).toString('base64') },
      },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'acme-secrets' },
        data: { OIDC_CLIENT_SECRET: 'eA==', GITHUB_CLIENT_SECRET: 'eA==' },
      },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'myvd' }, data: { 'myvd.conf': myvd } },
    ]
    const collectionOf = ({ apiVersion, kind }: ConfigObject, at: string): string => {
      if (apiVersion === 'v1') return `/api/v1/namespaces/${at}/${kind.toLowerCase()}s`
      if (kind === 'OpenUnison' || kind === 'MessageListener') {
        return `/apis/${apiVersion}/namespaces/${at}/${kind.toLowerCase()}s`
      }
      return objectPath(apiVersion, kind, at)
    }
    /** Only what is outside of this product. */
    function expectReport(report: string, out: string): void {
      const aside = readdirSync(join(folder, out, 'set-aside'), { recursive: true, encoding: 'utf8' })
      expect(aside.filter((name) => name.endsWith('.yaml')).sort(), report).toEqual([
        'applications/workload-token.yaml',
        'authmechs/saml2.yaml',
        'workflows/publish-namespace.yaml',
      ])
      expect(report).toContain('3 are set aside')
      expect(report).toContain('the URLs of these applications get 503: workload-token.')
      expect(report).not.toContain('Could not be read')
      expect(report).not.toContain(password)
      const directory = readFileSync(join(folder, out, 'directoryinserts', 'activedirectory.yaml'), 'utf8')
      expect(directory).toContain('value: "#[AD_BIND_PASSWORD]"')
    }

    test('from its namespace', async () => {
      const portal = await cluster.namespace()
      // The values of a chart aren't an object.
      const objects = read([...sets, 'login-active-directory']).filter(({ kind }) => kind !== undefined)
      for (const one of [...objects, ...others]) {
        await cluster.must('POST', collectionOf(one, portal), {
          ...one,
          metadata: { ...one.metadata, namespace: portal },
        })
      }
      const from = ['--openunison', `kubernetes:${portal}`, '--kubeconfig', cluster.connection.kubeconfig]
      const out = join(folder, 'portal')
      const { stdout } = await run(gatehouse, ['import', ...from, '--out', out, '--with-secrets'])
      expectReport(stdout, 'portal')
      await run(gatehouse, ['check', '--config', out])
    }, 240_000)

    test.each(logins)(
      'from rendered charts with %s',
      async (login) => {
        const charts = join(folder, `${login}.yaml`)
        const objects = [...read([...sets, login]), ...others]
        writeFileSync(charts, objects.map((one) => stringify(one)).join('---\n'))
        const out = join(folder, login)
        const { stdout } = await run(gatehouse, ['import', '--openunison', charts, '--out', out, '--with-secrets'])
        expectReport(stdout, login)
        await run(gatehouse, ['check', '--config', out])
      },
      240_000,
    )
  })

  test('reads no secret without the option', async () => {
    const { stdout } = await importTo('without')
    expect(stdout).toContain('orchestra-secrets-source/DB_PASSWORD')
    expect(() => statSync(join(folder, 'without', 'secrets'))).toThrow('ENOENT')
    await run(gatehouse, ['check', '--config', join(folder, 'without')])
  }, 60_000)

  test('names the webhook that refuses changes once OpenUnison is gone, or says how to find it', async () => {
    expect((await importTo('blind')).stdout).toContain('kubectl get validatingwebhookconfigurations')
    const name = `openunison-workflow-validation-${namespace}`
    const webhook = (service: string) => ({
      name: 'workflows-openunison.tremolo.io',
      clientConfig: { service: { namespace: service, name: 'openunison-orchestra', path: '/workflows' } },
      rules: [{ apiGroups: [group], apiVersions: ['v1'], operations: ['CREATE'], resources: ['workflows'] }],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': service } },
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
    })
    const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
    for (const [own, service] of [
      [name, namespace],
      [`${name}-other`, `${namespace}-other`],
    ] as const) {
      await cluster.must('POST', path, { metadata: { name: own }, webhooks: [webhook(service)] })
      onTestFinished(async () => {
        await cluster.must('DELETE', `${path}/${own}`)
      })
    }
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const rules = [
      { apiGroups: ['admissionregistration.k8s.io'], resources: ['validatingwebhookconfigurations'], verbs: ['list'] },
    ]
    await cluster.must('POST', `${rbac}/clusterroles`, { metadata: { name }, rules })
    await cluster.must('POST', `${rbac}/clusterrolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name: 'importer', namespace }],
    })
    const { stdout } = await importTo('seeing')
    expect(stdout.match(/kubectl delete .*/g)).toEqual([`kubectl delete validatingwebhookconfiguration ${name}`])
  }, 60_000)

  test('an account that may not list the objects gets a reason, and no folder', async () => {
    const stranger = join(folder, 'stranger')
    await cluster.serviceAccount({ namespace, name: 'stranger' })
    writeFileSync(
      stranger,
      tokenKubeconfig(cluster, await cluster.token({ namespace, name: 'stranger' }, { seconds: 3600 })),
    )
    const failed = await importTo('none', '--kubeconfig', stranger).catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('openunisons') })
    expect(() => statSync(join(folder, 'none'))).toThrow('ENOENT')
  }, 60_000)

  test('credentials that have expired get a reason, and no folder', async () => {
    const expired = join(folder, 'expired')
    await cluster.serviceAccount({ namespace, name: 'expired' })
    const token = await cluster.token({ namespace, name: 'expired' }, { seconds: 3600 })
    await cluster.must('DELETE', `/api/v1/namespaces/${namespace}/serviceaccounts/expired`)
    writeFileSync(expired, tokenKubeconfig(cluster, token))
    // The API server accepts a token for some seconds longer, of an account that may not list the objects.
    await until(async () => {
      const failed = await importTo('none', '--kubeconfig', expired).catch((error: unknown) => error)
      expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing was written.') })
      const { stderr } = failed as { stderr: string }
      return stderr.includes('401 Unauthorized') && stderr.includes('The credentials are wrong or have expired')
    }, 120_000)
    expect(readdirSync(folder).filter((name) => name.includes('none'))).toEqual([])
  }, 180_000)

  test('a namespace with the objects of one chart only is imported, and what is missing is in the report', async () => {
    const half = await cluster.namespace()
    await create(
      'PortalUrl',
      'wiki',
      { label: 'Wiki', url: 'https://#[OU_HOST]/wiki', azRules: rules },
      objectPath(`${group}/v1`, 'PortalUrl', half),
    )
    await create(
      'AuthenticationChain',
      'login',
      { level: 20, authMechs: [{ name: 'jit', required: 'required' }] },
      objectPath(`${group}/v1`, 'AuthenticationChain', half),
    )
    const from = ['--openunison', `kubernetes:${half}`, '--kubeconfig', cluster.connection.kubeconfig]
    const { stdout } = await run(gatehouse, ['import', ...from, '--out', join(folder, 'half')])
    expect(stdout).toContain('1 of 2 objects are ready to serve, 1 are set aside')
    expect(stdout).toContain('no mechanism named "jit"')
    expect(stdout).toContain('There is neither an OpenUnison object')
    expect(stdout).toContain('The ConfigMap myvd of the chart orchestra is missing')
  }, 60_000)
})
