/** Asks the browser for what the form says, puts the answer into the form and sends it. */
const form = document.querySelector('form[data-passkey]')
const problem = document.getElementById('problem')

const toBytes = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))

const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

const withBytes = (credentials) => credentials?.map((one) => ({ ...one, id: toBytes(one.id) }))

async function create(options) {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    user: { ...options.user, id: toBytes(options.user.id) },
    excludeCredentials: withBytes(options.excludeCredentials),
  }
  const { id, type, response } = await navigator.credentials.create({ publicKey })
  return {
    id,
    rawId: id,
    type,
    clientExtensionResults: {},
    response: {
      clientDataJSON: toText(response.clientDataJSON),
      attestationObject: toText(response.attestationObject),
      transports: response.getTransports?.() ?? [],
    },
  }
}

async function get(options) {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    allowCredentials: withBytes(options.allowCredentials),
  }
  const { id, type, response } = await navigator.credentials.get({ publicKey })
  return {
    id,
    rawId: id,
    type,
    clientExtensionResults: {},
    response: {
      clientDataJSON: toText(response.clientDataJSON),
      authenticatorData: toText(response.authenticatorData),
      signature: toText(response.signature),
    },
  }
}

form?.addEventListener('submit', async (event) => {
  event.preventDefault()
  problem.hidden = true
  try {
    const options = JSON.parse(form.dataset.options)
    const made = form.dataset.passkey === 'create' ? await create(options) : await get(options)
    form.elements.namedItem('response').value = JSON.stringify(made)
    HTMLFormElement.prototype.submit.call(form)
  } catch (error) {
    problem.textContent = `${form.dataset.failed} ${error instanceof Error ? error.message : error}`
    problem.hidden = false
  }
})

// Sent without a passkey, the form would be a failed login: nobody can send it before this script listens.
const button = form?.querySelector('button')
if (button) button.disabled = false
