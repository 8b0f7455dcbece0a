// Tells who is logged in.
export const handle = (_request, { subject }) => ({
  status: 200,
  json: { uid: subject.uid, dn: subject.dn, mail: subject.attributes.mail?.[0] },
})
