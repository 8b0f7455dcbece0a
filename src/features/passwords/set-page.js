// Takes the secret of the mail's link out of the address, where it would stay in the history, and puts it into the form.
const field = document.getElementById('token')
const secret = location.hash.slice(1)
if (field !== null && secret !== '') {
  field.value = secret
  field.closest('[data-token]').hidden = true
  history.replaceState(null, '', location.pathname)
}
