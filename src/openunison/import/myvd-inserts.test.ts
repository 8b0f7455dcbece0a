import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { myvdInserts } from './myvd-inserts.ts'

const root = `
server.rootdse.chain=dse
server.rootdse.nameSpace=
server.rootdse.dse.className=net.sourceforge.myvd.inserts.RootDSE
server.myvdroot.chain=root
server.myvdroot.nameSpace=o=Tremolo
server.myvdroot.root.className=net.sourceforge.myvd.inserts.RootObject
`

const userObjects = { name: 'accounts', className: 'com.tremolosecurity.provisioning.providers.K8sCrdUserProvider' }
const database = { name: 'jitdb', className: 'com.tremolosecurity.provisioning.core.providers.BasicDB' }

function convert(text: string, targets = [userObjects, database]) {
  const { objects, problems } = myvdInserts(text, targets)
  const specs = objects.map(({ name, text }) => {
    const { className, suffix, params, mapping } = (parse(text) as { spec: Record<string, unknown> }).spec
    const values = Map.groupBy(params as { name: string; value: string }[], ({ name }) => name)
    const pairs = Array.from(values, ([name, list]) => [name, list.map(({ value }) => value).join()])
    return { name, className, suffix, params: Object.fromEntries(pairs), ...(mapping === undefined ? {} : { mapping }) }
  })
  return { specs, problems }
}

test('a directory for logins, and the users that a portal stores in its cluster', () => {
  const { specs, problems } = convert(`# The whole tree
server.nameSpaces=rootdse,myvdroot,shadowUsers,activedirectory
${root}
server.shadowUsers.chain=mapping,api
server.shadowUsers.nameSpace=ou=shadow,o=Tremolo
server.shadowUsers.mapping.className=net.sourceforge.myvd.inserts.mapping.AttributeMapper
server.shadowUsers.mapping.config.mapping=mail=email,givenName=first_name
server.shadowUsers.api.className=com.tremolosecurity.myvd.K8sCrdInsert
server.shadowUsers.api.config.nameSpace=openunison
server.activedirectory.chain=dnmapper,membertrans,ldap
server.activedirectory.nameSpace=ou=activedirectory,o=Data
server.activedirectory.dnmapper.className=net.sourceforge.myvd.inserts.mapping.DNAttributeMapper
server.activedirectory.dnmapper.config.dnAttribs=member,owner, Member,login
server.activedirectory.membertrans.className=net.sourceforge.myvd.inserts.mapping.AttributeMapper
server.activedirectory.membertrans.config.mapping=member=member,uid=samAccountName,login=userPrincipalName
server.activedirectory.ldap.className=com.tremolosecurity.proxy.myvd.inserts.ad.ADLdapInsert
server.activedirectory.ldap.config.host=ad.acme.test
server.activedirectory.ldap.config.port=636
server.activedirectory.ldap.config.remoteBase=cn=users,dc=acme,dc=test
server.activedirectory.ldap.config.proxyDN=cn=reader,dc=acme,dc=test
server.activedirectory.ldap.config.proxyPass=#[AD_BIND_PASSWORD]
server.activedirectory.ldap.config.useSrvDNS=false
server.activedirectory.ldap.config.type=ldaps`)
  expect(problems).toEqual([])
  expect(specs).toEqual([
    {
      name: 'shadowusers',
      className: 'directory.Target',
      suffix: 'ou=shadow,o=Tremolo',
      params: { target: 'accounts' },
      mapping: { mail: 'email', givenName: 'first_name' },
    },
    {
      name: 'activedirectory',
      className: 'directory.Ldap',
      suffix: 'ou=activedirectory,o=Data',
      params: {
        host: 'ad.acme.test',
        port: '636',
        useSSL: 'true',
        searchBase: 'cn=users,dc=acme,dc=test',
        adminDN: 'cn=reader,dc=acme,dc=test',
        adminPasswd: '#[AD_BIND_PASSWORD]',
        dnAttribs: 'Member,owner,userPrincipalName',
      },
      mapping: { uid: 'samAccountName', login: 'userPrincipalName' },
    },
  ])
})

test('a connection that may be encrypted is not made a plain one', () => {
  const part = (type: string) => `server.nameSpaces=ad
server.ad.chain=ldap
server.ad.nameSpace=ou=ad,o=Data
server.ad.ldap.className=com.tremolosecurity.proxy.myvd.inserts.ad.ADLdapInsert
server.ad.ldap.config.host=ad.acme.test
server.ad.ldap.config.type=${type}`
  expect(convert(part('LDAPS')).specs).toMatchObject([{ params: { useSSL: 'true' } }])
  const plain = convert(part('ldap')).specs[0]?.params
  expect(plain).not.toHaveProperty('useSSL')
  expect(plain).toMatchObject({ dnAttribs: 'none' })
  const { specs, problems } = convert(part('#[AD_CON_TYPE]'))
  expect(specs).toEqual([])
  expect(problems.join()).toContain('write a DirectoryInsert for it')
})

test('users and groups of a database are one part', () => {
  const { specs, problems } = convert(`
server.nameSpaces=rootdse,myvdroot,shadow,shadowUsers,shadowGroups
${root}
server.shadow.chain=entry
server.shadow.nameSpace=ou=shadow,o=Tremolo
server.shadow.entry.className=net.sourceforge.myvd.inserts.RootObject
server.shadowUsers.chain=loadGroups,map,tremolo
server.shadowUsers.nameSpace=ou=users,ou=shadow,o=Tremolo
server.shadowUsers.loadGroups.className=com.tremolosecurity.proxy.myvd.inserts.AddGroupsFromProvisioningTarget
server.shadowUsers.loadGroups.config.targetName=jitdb
server.shadowUsers.loadGroups.config.attributeName=groups
server.shadowUsers.map.className=net.sourceforge.myvd.inserts.mapping.AttributeMapper
server.shadowUsers.map.config.mapping=givenName=givenname
server.shadowUsers.tremolo.className=net.sourceforge.myvd.inserts.jdbc.JdbcInsert
server.shadowUsers.tremolo.config.mapping=mail=mail,uid=sub,givenname=firstName,sn=lastName
server.shadowGroups.chain=dbgroups,tremolo
server.shadowGroups.nameSpace=ou=groups,ou=shadow,o=Tremolo
server.shadowGroups.dbgroups.className=net.sourceforge.myvd.inserts.jdbc.DBGroups
server.shadowGroups.tremolo.className=net.sourceforge.myvd.inserts.jdbc.JdbcInsert`)
  expect(problems).toEqual([])
  expect(specs).toEqual([
    {
      name: 'shadowusers',
      className: 'directory.Target',
      suffix: 'ou=shadow,o=Tremolo',
      params: { target: 'jitdb', people: 'ou=users', groups: 'ou=groups', groupsAttribute: 'groups' },
      mapping: { givenName: 'firstName', sn: 'lastName' },
    },
  ])
})

test('what cannot be converted is a problem, and a part that is switched off is not', () => {
  const part = (className: string, more = '') => `
server.nameSpaces=one
server.one.chain=x
server.one.nameSpace=ou=one,o=Tremolo
server.one.x.className=${className}
${more}`
  const nameless = '"ou=one,o=Tremolo" (com.acme.Own): write a DirectoryInsert for it'
  expect(convert(part('com.acme.Own'))).toEqual({ specs: [], problems: [`myvd.conf: ${nameless}`] })
  expect(convert(part('com.acme.Own', 'server.one.enabled=false'))).toEqual({ specs: [], problems: [] })
  expect(convert(part('com.tremolosecurity.myvd.K8sCrdInsert'), [database]).problems).toHaveLength(1)
  expect(convert(part('a.LDAPInterceptor', 'server.one.x.config.useSrvDNS=true')).problems).toHaveLength(1)
  expect(convert('')).toEqual({ specs: [], problems: [] })
  expect(myvdInserts('x'.repeat(2 << 20), []).problems).toHaveLength(1)
})
