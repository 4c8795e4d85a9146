import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { elements, escaped, textOf } from "./xml.ts";

suite("XML of S3 responses", () => {
  test("elements are read one by one, with attributes, entities and line breaks", () => {
    const xml = `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.example/">
      <IsTruncated>false</IsTruncated><Contents><Key>a&amp;b&#x27;&#99;</Key><Size>1</Size></Contents>
      <Contents>\n<Key>d</Key>\n<Size>22</Size></Contents></ListBucketResult>`;
    assert.deepEqual(
      elements(xml, "Contents").map((object) => [textOf(object, "Key"), textOf(object, "Size")]),
      [
        ["a&b'c", "1"],
        ["d", "22"],
      ],
    );
    assert.equal(textOf(xml, "IsTruncated"), "false");
    assert.equal(textOf(xml, "NextContinuationToken"), undefined);
  });

  test("escaped text is read back as it was", () => {
    const text = `<&>"' ]]> &amp;`;
    assert.equal(textOf(`<Key>${escaped(text)}</Key>`, "Key"), text);
  });
});
