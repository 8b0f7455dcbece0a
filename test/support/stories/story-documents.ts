/** Configuration documents that several stories share; a story adds its own after a line `---`. */

/** Users in the embedded database, for logins and workflows. */
export const peopleInDatabase = `apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: people }
spec: { className: directory.Database, suffix: "ou=people,o=Tremolo" }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database }`

/** The mechanism that reads bearer tokens. */
export const tokenMechanism = `apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: jwt }
spec: { className: auth.OAuth2JWT, uri: /auth/jwt }`

/** The chain `development`, for callers with a token of `gatehouse token mint`, and its issuer. */
export const developmentLogin = `apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: development }
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: jwt
      required: required
      params:
        issuer: "#[GATEHOUSE_URL]/dev-issuer"
        audience: gatehouse
        fromWellKnown: "true"
        linkToDirectory: "false"
        noMatchOU: api
        uidAttr: sub
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: development-issuer }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['*']
      uri: /dev-issuer
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: filters.DevelopmentIssuer, params: { issuer: "#[GATEHOUSE_URL]/dev-issuer" } }]`

/** Pages for the users of `ou=staff` who logged in by the chain `login`, and for those of its group `crew`. */
export const staffPages = `apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: pages }
spec:
  # Longer than the story: what is remembered must not outlive what the directory says.
  azTimeoutMillis: 600000
  cookieConfig: { sessionCookieName: people, domain: "*", timeout: 900, secure: false, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /staff
      authChain: login
      azRules: [{ scope: dn, constraint: "ou=staff,o=Tremolo" }]
      filterChain: [{ className: filters.CheckSession, params: { applicationName: pages } }]
    - hosts: ["127.0.0.1"]
      uri: /crew
      authChain: login
      azRules: [{ scope: group, constraint: "cn=crew,ou=groups,ou=staff,o=Tremolo" }]
      filterChain: [{ className: filters.CheckSession, params: { applicationName: pages } }]`

/** An application without cookies. */
export const application = (name: string, urls: readonly object[]): string => `apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: ${name} }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls: ${JSON.stringify(urls)}`

type Params = Readonly<Record<string, string | readonly string[]>>

/** A URL with a registration form that requires a login and a mail address, with further parameters. */
export const registrationUrl = (uri: string, params: Params, special: object = {}): object => ({
  hosts: ['*'],
  uri,
  azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
  filterChain: [
    {
      className: 'filters.Register',
      params: {
        'frontPage.title': 'Register',
        'frontPage.text': 'Tell us who you are',
        homeURL: '/home',
        logoutURL: '/logout',
        uidAttributeName: 'uid',
        attributeNames: ['uid', 'mail'],
        'uid.displayName': 'Login',
        'mail.displayName': 'Mail',
        ...params,
      },
    },
  ],
  ...special,
})
