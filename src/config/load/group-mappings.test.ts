import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { loadText } from '#testing/modules/check-text.ts'

const text = `
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: k8sidp }
spec:
  isApp: false
  cookieConfig: { cookiesEnabled: true, sessionCookieName: idp, domain: portal.test, timeout: 60 }
  urls:
    - hosts: [portal.test]
      uri: /auth/idp/k8sIdp
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: com.tremolosecurity.proxy.filters.SetupGroupMetadataWatch
          params: { extIsDN: 'true', target: k8s, namespace: openunison }
      idp:
        className: com.tremolosecurity.idp.providers.OpenIDConnectIdP
        params: {}
        mappings: { strict: true, map: [{ targetAttributeName: sub, targetAttributeSource: uid, sourceType: user }] }
        trusts: []
---
apiVersion: openunison.tremolo.io/v1
kind: GroupMetaData
metadata: { name: admins }
spec: { groupName: Administrators-External, externalName: 'CN=Admins,DC=example,DC=com' }
---
apiVersion: openunison.tremolo.io/v1
kind: GroupMetaData
metadata: { name: broken }
spec: { groupName: broken, externalName: [x] }
---
apiVersion: openunison.tremolo.io/v1
kind: NamespaceGroupMetaData
metadata: { name: payroll }
spec: { cluster: k8s, namespace: payroll, mappings: [{ groupName: payroll, externalName: acme/Payroll, roleName: view }] }
`

test('the configuration has the mappings of its objects, and the cluster that a filter of an identity provider names', () => {
  const { configuration } = loadText(text, catalog)
  expect(configuration?.groupMappings).toEqual({
    mappings: [
      { group: 'administrators-external', external: 'CN=Admins,DC=example,DC=com' },
      { group: 'payroll', external: 'acme/Payroll' },
    ],
    sources: [{ target: 'k8s', namespace: 'openunison' }],
  })
})
