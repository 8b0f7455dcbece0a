import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { addEntry } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'

const password = 'correct horse battery'
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openunison-directory-'))
let slapd: Slapd
let gateway: GatewayProcess
let admins = ''

/** What Active Directory has and OpenLDAP does not. */
const schema = [
  "attributetype ( 1.2.840.113556.1.4.221 NAME 'sAMAccountName' EQUALITY caseIgnoreMatch SUBSTR caseIgnoreSubstringsMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15{256} SINGLE-VALUE )",
  "objectclass ( 1.2.840.113556.1.5.9 NAME 'user' SUP inetOrgPerson STRUCTURAL MAY sAMAccountName )",
]

/** In the form of the charts, with `openunison.az_groups` and a login at Active Directory. */
const charts = (): string => `apiVersion: openunison.tremolo.io/v6
kind: OpenUnison
metadata: { name: orchestra }
spec:
  hosts: [{ names: [{ env_var: OU_HOST, name: 127.0.0.1 }] }]
  non_secret_data: []
  secret_data: [AD_BIND_PASSWORD]
  source_secret: orchestra-secrets-source
---
apiVersion: v1
kind: Secret
metadata: { name: orchestra-secrets-source }
stringData: { AD_BIND_PASSWORD: ${slapd.adminPassword} }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: myvd }
data:
  myvd.conf: |-
    server.nameSpaces=activedirectory
    server.activedirectory.chain=dnmapper,objmap,membertrans,ldap
    server.activedirectory.nameSpace=ou=activedirectory,o=Data
    server.activedirectory.dnmapper.className=net.sourceforge.myvd.inserts.mapping.DNAttributeMapper
    server.activedirectory.dnmapper.config.dnAttribs=member,owner,member,distinguishedName,manager
    server.activedirectory.dnmapper.config.localBase=ou=activedirectory,o=Data
    server.activedirectory.dnmapper.config.remoteBase=${slapd.baseDn}
    server.activedirectory.objmap.className=net.sourceforge.myvd.inserts.mapping.AttributeValueMapper
    server.activedirectory.objmap.config.mapping=objectClass.inetOrgPerson=user,objectClass.groupofnames=group
    server.activedirectory.membertrans.className=net.sourceforge.myvd.inserts.mapping.AttributeMapper
    server.activedirectory.membertrans.config.mapping=member=member,uid=samAccountName
    server.activedirectory.ldap.className=com.tremolosecurity.proxy.myvd.inserts.ad.ADLdapInsert
    server.activedirectory.ldap.config.host=127.0.0.1
    server.activedirectory.ldap.config.port=${new URL(slapd.url).port}
    server.activedirectory.ldap.config.remoteBase=${slapd.baseDn}
    server.activedirectory.ldap.config.proxyDN=${slapd.adminDn}
    server.activedirectory.ldap.config.proxyPass=#[AD_BIND_PASSWORD]
    server.activedirectory.ldap.config.type=ldap
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: login-form }
spec: { className: com.tremolosecurity.proxy.auth.FormLoginAuthMech, uri: /auth/login-form, init: {}, secretParams: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: map }
spec: { className: com.tremolosecurity.proxy.auth.FullMappingAuthMech, uri: /auth/map, init: {}, secretParams: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: genoidctoken }
spec: { className: com.tremolosecurity.proxy.auth.GenerateOIDCTokens, uri: /auth/genoidctoken, init: {}, secretParams: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: enterprise-idp }
spec:
  level: 20
  root: o=Data
  authMechs:
  - { name: login-form, required: required, params: { uidAttr: uid, uidIsFilter: 'false' } }
  - { name: map, required: required, params: { map: ['sub|user|uid', 'uid|user|uid', 'groups|user|memberOf'] } }
  - { name: genoidctoken, required: required, params: { idpName: k8sIdp, trustName: kubernetes } }
---
apiVersion: openunison.tremolo.io/v1
kind: Application
metadata: { name: token }
spec:
  azTimeoutMillis: 3000
  isApp: true
  urls:
  - hosts: ['#[OU_HOST]']
    uri: /k8stoken/token
    authChain: enterprise-idp
    azRules: [{ scope: filter, constraint: '(groups=${admins})' }]
    filterChain:
    - className: com.tremolosecurity.scalejs.token.ws.ScaleToken
      params:
        displayNameAttribute: sub
        frontPage.title: Your token
        frontPage.text: Copy the command
        uidAttributeName: uid
        logoutURL: /logout
        homeURL: /scale/
        warnMinutesLeft: '5'
        tokenClassName: com.tremolosecurity.scalejs.KubectlTokenLoader
        kubectlUsage: Run this command
        k8sCaCertName: unison-ca
        unisonCaCertName: unison-ca
        kubectlTemplate: kubectl --token=$token.encodedIdJSON$
  cookieConfig: &cookie
    sessionCookieName: tremolosession
    domain: '#[OU_HOST]'
    secure: true
    httpOnly: true
    logoutURI: /logout
    keyAlias: session-unison
    timeout: 900
    scope: -1
    cookiesEnabled: true
---
apiVersion: openunison.tremolo.io/v1
kind: Application
metadata: { name: k8sidp }
spec:
  azTimeoutMillis: 3000
  isApp: false
  urls:
  - hosts: ['#[OU_HOST]']
    filterChain: []
    uri: /auth/idp/k8sIdp
    azRules: [{ scope: dn, constraint: o=Data }]
    idp:
      className: com.tremolosecurity.idp.providers.OpenIDConnectIdP
      params: { jwtSigningKey: unison-saml2-rp-sig }
      mappings:
        strict: true
        map:
        - { targetAttributeName: sub, targetAttributeSource: sub, sourceType: user }
        - { targetAttributeName: groups, targetAttributeSource: groups, sourceType: user }
      trusts:
      - name: kubernetes
        params:
          clientID: kubernetes
          publicEndpoint: 'true'
          redirectURI: [http://localhost:8000]
          codeLastMileKeyName: last-mile
          authChainName: enterprise-idp
          codeTokenSkewMilis: '60000'
          accessTokenTimeToLive: '60000'
          accessTokenSkewMillis: '120000'
  cookieConfig: { sessionCookieName: tremolosession, domain: '#[OU_HOST]', secure: true, httpOnly: true, timeout: 900, cookiesEnabled: true }
`

beforeAll(async () => {
  slapd = await startSlapd({ schema })
  admins = `cn=k8s-admins,${slapd.peopleDn}`
  for (const login of ['ada', 'bob']) {
    await addEntry(slapd, `cn=${login} Example,${slapd.peopleDn}`, {
      objectClass: ['user'],
      ...{ sAMAccountName: [login], cn: [`${login} Example`], sn: ['Example'], userPassword: [password] },
    })
  }
  await addEntry(slapd, admins, { objectClass: ['groupOfNames'], member: [`cn=ada Example,${slapd.peopleDn}`] })
  const file = join(folder, 'charts.yaml')
  writeFileSync(file, charts())
  const config = join(folder, 'config')
  const report = await commandOutput('import', '--openunison', file, '--out', config, '--with-secrets')
  expect(report).toContain(' 0 are set aside')
  gateway = await startGatewayProcess({ config, dataFolder: join(folder, 'data') })
}, 180_000)
afterAll(async () => {
  await gateway?.stop()
  await slapd?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function tokenPage(login: string) {
  const browser = new PlainBrowser(gateway.url)
  await browser.logIn('/k8stoken/token/user', login, password)
  return browser.get('/k8stoken/token/user', { accept: 'application/json' })
}

test('a group of the directory has its own name in rules and in tokens', async () => {
  const page = await tokenPage('ada')
  expect(page.status, page.body).toBe(200)
  const { token } = JSON.parse(page.body) as { token: Record<string, string> }
  const idToken = Object.values(token).find((text) => text.split('.').length === 3) ?? ''
  expect(decodeJwt(idToken), page.body).toMatchObject({ sub: 'ada', groups: [admins] })
  expect((await tokenPage('bob')).status).toBe(403)
})
