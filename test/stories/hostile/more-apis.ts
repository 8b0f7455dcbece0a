/** What the quickstart lacks: call-workflow for programs with any token, and the APIs of accounts, operators and links. */
export const moreApis = `
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: call }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['127.0.0.1', 'localhost']
      uri: /call
      authChain: api
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: filters.CallWorkflow, params: { allowedWorkflow: crm-sync } }]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: account }
spec:
  cookieConfig: { sessionCookieName: portal, domain: '*', timeout: 900, secure: false, httpOnly: true, cookiesEnabled: true }
  urls:
    - hosts: ['127.0.0.1', 'localhost']
      uri: /account
      authChain: login
      azRules: [{ scope: dn, constraint: 'ou=people,o=Tremolo' }]
      filterChain: [{ className: filters.Account, params: { stepUpChain: login, enrolChain: login, homeURL: /portal } }]
    - hosts: ['127.0.0.1', 'localhost']
      uri: /runs
      authChain: login
      azRules: [{ scope: group, constraint: 'cn=administrators,ou=groups,ou=people,o=Tremolo' }]
      filterChain: [{ className: filters.WorkflowAdmin }]
    - hosts: ['127.0.0.1', 'localhost']
      uri: /ops
      authChain: login
      azRules: [{ scope: group, constraint: 'cn=administrators,ou=groups,ou=people,o=Tremolo' }]
      filterChain:
        - className: filters.Operators
          params:
            bases: ['People=ou=people,o=Tremolo']
            searchableAttributes: ['uid=Login', 'mail=Mail']
            resultAttributes: ['uid=Login', 'displayName=Name']
            scaleMainAppName: portal
            scaleMainURI: /main
            homeUrl: /portal
    - hosts: ['127.0.0.1', 'localhost']
      uri: /password
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.Passwords
          params: { publicURL: 'https://portal.example.com/password', passwordTarget: people, requestsPerMinute: '0' }
    - hosts: ['127.0.0.1', 'localhost']
      uri: /decide
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.ApprovalLink
          params: { url: 'https://portal.example.com/decide', withoutLogin: 'true' }
`
