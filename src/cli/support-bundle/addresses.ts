const hidden = '[redacted]'

/** Addresses have a secret in any part of their path, as those of webhooks do. Only these words and small numbers are known to be none. */
const words: ReadonlySet<string> = new Set(
  `.well-known account accounts acs adfs admin allow api apis approvals auth authorization authorize bulk callback
  certs check_alive code common connect consumers csv default device disable docs email false fragment groups health
  healthz hooks idp introspect invoke json jwks jwks.json keys livez login logout main me metadata metrics namespaces none
  oauth oauth-authorization-server oauth2 off oidc on openid openid-configuration openid-connect ops organizations
  paths pods portal prefer profile protocol query ready readyz realm realms recaptcha register reports requests
  require resourcetypes rest revoke saml saml2 schemas scim scim2 secrets serviceproviderconfig services siteverify
  sso status token tokens triggers true turnstile user userinfo users verify verify-ca verify-full version webhook
  webhooks workflows`.split(/\s+/),
)

/** Their paths are names of folders, entries and databases. */
const plainPaths = /^(?:file|unix|ldap[is]?|postgres(?:ql)?|oci|spiffe):$/i
/** Names, not addresses of servers. */
const namespaces = /^(?:schemas\.[\w.-]+|www\.w3\.org)$/i

// Slashes may be escaped as in JSON. Every repetition is bounded or cannot be entered twice, so that long words cost no more than others.
const address = /([a-z][a-z\d+.-]{0,20}:|(?<![\w:/\\]))(\\*\/\\*\/)([^\s/\\?#"'`<>]{0,2000})([^\s"'`<>]*)/gi
const query = /(?<=[\w/-])\?(?=[\w.~%[\]-]{1,60}=[^=\s])[^\s"'`<>]+/g
const encoded = /\b((?:https?|wss?)%(?:25)*3A)[^\s"'`<>&]+/gi
/** A placeholder, a name of a parameter with its `=`, or a part. */
const token = /#\[[\w.-]+\]|\[redacted\]|\{\w+\}|(?<=[?&])[a-z][a-z_.-]{0,30}=(?=[^=&\s])|[^/?&=#\\]+/gi

/** The text with every address as `https://host/api/[redacted]?name=[redacted]`. */
export const withoutSecretPaths = (text: string): string =>
  text
    .replace(encoded, `$1${hidden}`)
    .replace(address, (all, scheme: string, slashes: string, host: string, rest: string) => {
      // A comment of a script begins with two slashes too.
      if ((scheme === '' && !host.includes('.')) || namespaces.test(host)) return all
      const start = plainPaths.test(scheme) ? rest.search(/[?#]|$/) : 0
      return `${scheme}${slashes}${host}${rest.slice(0, start)}${withoutParts(rest.slice(start))}`
    })
    .replace(query, withoutParts)

const withoutParts = (text: string): string => text.replace(token, (part) => (isPlain(part) ? part : hidden))

function isPlain(part: string): boolean {
  if (/^(?:#\[.+\]|\[redacted\]|\{\w+\}|.+=)$/.test(part)) return true
  // The sentence may continue after the address.
  const [word = ''] = /^.*?(?=[,.:;)\]}]*$)/.exec(part) ?? []
  return /^v?\d{1,4}(?:\.\d{1,3})?$/.test(word) || words.has(word.toLowerCase())
}

/** What an address has that is likely a secret, to be found where it is quoted without the host. */
export function secretPaths(value: string): readonly string[] {
  const { protocol = 'file:', host = '', pathname = '', search = '' } = URL.parse(value) ?? {}
  if (plainPaths.test(protocol) || namespaces.test(host)) return []
  const parts = `${pathname}${search}`.match(token) ?? []
  const random = parts.filter((part) => !isPlain(part) && part.length >= 12 && /\d/.test(part) && /[a-z]/i.test(part))
  const isHook = /hook/i.test(value) && !parts.every(isPlain)
  return [...random, ...(isHook || random.length > 0 ? [pathname, `${pathname}${search}`] : [])].filter(
    (part) => part.length >= 8,
  )
}
