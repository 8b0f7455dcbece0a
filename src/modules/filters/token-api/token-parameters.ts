import { flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import type { Parameter } from '#sdk/module/parameters.ts'

const colour = (fallback: string): Parameter<string | undefined> => ({
  ...parsed(
    'colour',
    (value) => {
      if (/^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(value)) return value
      throw new Error(`must be a colour such as #ac1622, not "${value}"`)
    },
    { about: 'A colour of the portal.' },
  ),
  fallback,
})

export const tokenParameters = {
  displayNameAttribute: text({ about: 'The attribute with the name that the portal shows for users.', required: true }),
  'frontPage.title': text({ about: 'The title of the page.', required: true }),
  'frontPage.text': text({ about: 'The text of the page.', required: true }),
  homeURL: text({ about: 'Where the page leads back to.', required: true }),
  logoutURL: text({ about: 'The logout path or address.', required: true }),
  warnMinutesLeft: wholeNumber({
    about: 'Minutes before the end of a session at which users are warned.',
    required: true,
    fallback: 0,
    max: 10_000,
  }),
  tokenClassName: text({
    about: 'What is shown: `KubectlTokenLoader`, `AttributeToken`, `TOTPToken` or `LoadToken`.',
    required: true,
  }),
  qrCodeAttribute: text({ about: 'The parts that are also shown as a QR code.' }),
  idpName: text({
    about: '`KubectlTokenLoader`: the trust whose tokens are shown; the latest tokens of the login when absent.',
    reference: 'identity provider',
  }),
  trustName: text({
    about: '`KubectlTokenLoader`: the trust of `idpName`, by the name that the mechanism has for it.',
  }),
  renewTokens: flag({
    about:
      '`KubectlTokenLoader`: `"true"` lets POST make new tokens within the session, where it has a refresh token. Otherwise a new id_token requires logging out and in.',
  }),
  uidAttributeName: text({
    about: '`KubectlTokenLoader`, `TOTPToken`: the attribute with the login; the login itself when absent.',
  }),
  kubectlUsage: text({ about: '`KubectlTokenLoader`: a text that says what to do.' }),
  kubectlTemplate: text({
    about:
      '`KubectlTokenLoader`: a command for a POSIX shell. `$name$` is replaced by a value, quoted for its place, and `\\$` by a dollar.',
  }),
  kubectlWinUsage: text({ about: '`KubectlTokenLoader`: the same for PowerShell.' }),
  oulogin: text({ about: '`KubectlTokenLoader`: a text about a login plug-in.' }),
  k8sCaCertName: text({
    about: '`KubectlTokenLoader`: the certificate of the API server’s authority.',
    reference: 'key',
    absentReference: 'warning',
  }),
  unisonCaCertName: text({
    about: '`KubectlTokenLoader`: the certificate of the authority of this host.',
    reference: 'key',
    absentReference: 'warning',
  }),
  k8sURL: text({ about: '`KubectlTokenLoader`: the address of the API server; with it there is a `kubeconfig`.' }),
  k8sClusterName: text({
    about: '`KubectlTokenLoader`: the name of the cluster in the kubeconfig.',
    fallback: 'kubernetes',
  }),
  attributes: list({ about: '`AttributeToken`: the attributes that are shown.' }),
  attributeName: text({ about: '`TOTPToken`, `LoadToken`: the attribute with the key or the password.' }),
  encryptionKey: text({ about: 'Not used: the attribute contains the value itself.' }),
  themePrimaryMain: colour('#AC1622'),
  themePrimaryDark: colour('#780f17'),
  themePrimaryLight: colour('#bc444e'),
  themeSecondaryMain: colour('#16aca0'),
  themeSecondaryDark: colour('#0f7870'),
  themeSecondaryLight: colour('#44bcb3'),
  errorColor: colour('#ff1744'),
  headerTitle: text({ about: "The portal's title.", fallback: 'Gatehouse' }),
}
