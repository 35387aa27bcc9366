-- HDF5 files of the newer structures, as h5py writes them.
local lu = require "luaunit"
local common = require "common"
local file, _, remove_files = common.new_files()

-- A file packed by gzip. Datasets of chunks that are found in each of the ways
-- there are: the same 5x7 matrix; 60 and 300 bytes one by one; some that were
-- never written; a group of 20 links and a text of 13 attributes, which are
-- too many for their headers.
local packed = ("1f8b0800000000000203eddd075c14c71e07f0d9bb038e038e2228220202228205141054" ..
    "942e1a8d0524680c0a1c023610f4891a238a46638fa2c6120331f8624d8c184bf489dd18" ..
    "637d3131117b89ddd84bf27c5b7e739523dcd37c1e396ffc84efcdececeeed7fcbcdccee" ..
    "5d3e888f89b391b9c8c45229a1e9059279be900f40f9d189b9bf768f8fe92522052207ae" ..
    "e010a6a4040aca44846149267f595a76bdcf78fe2d308461bc09118918c60cd32ca0765e" ..
    "ec48187b8f8e44d8c008126445825e88d97aecbb155b49ed099188889831b390328406a1" ..
    "94d4fe34cfc536edd5c6c2ca95302231b713854830fc3f4b6e3ebebeb421172b9110ab30" ..
    "b5b7e26c891723ff4fb118b4f2e2c5577c5c38e0b81089a562d98f62cc5452fb8f8b313b" ..
    "2fcc8d8b8c8f61f7978cee97fb78fffb534257c445c6441142b7a827aa4c80ebe179682f" ..
    "138c84c361293c063767cd9dfd8a8f466bf6686454c7a0e61ee9431736a7f6ed013f8715" ..
    "29fc1e60e4ca3d3012efb758b28ae1f70043b780b112accfff7541ce95ff1b825c1dfe6f" ..
    "678d69191ab9091a358b91abc7ff5dad91db859c1dff372cd8b5f2cff61bfd40b0acd999" ..
    "5357b59f241e12899d2c9a2e6869ed3e731266ed9b44cf1c05ca4eb616cc8fb39856f55c" ..
    "b1c21c1e123b894c7b1a0317401a41475a41d809e453bb2c4fba66734cda3348f059d0a4" ..
    "b7a212d969522262cf47b644e1bbb5bb30cd86fd8735581eed46f86a326ebf38f3d592eb" ..
    "d2d5d215fb5b1fbaa13f00773be245848014da4147e80c5da107f484ded007fa423fd80c" ..
    "b680013010b682ad61100c8621b00d0c8561b02d6c07dbc370d801768411828590444614" ..
    "fc9c3ec039a564c284f362f194c2a993664c9c3b6df1fb0b662d9b50fae1fa0f562eda32" ..
    "b96cfec6996b3fde5e54e4259ee34188d354db9d64f28eb7ab0fa8be80e90bb4be40d21d" ..
    "a073e5d153ae2fe0fa02aa6f47e80b74909ef5b6d353ae6f87e84bfa7694be141951d373" ..
    "9edbd111e6ee374bad2da48dc5654e25e573c52474b568163781bd805b04ecf52065b125" ..
    "e5b2e2a4a2e32e72d2f45d91bb30cdd2c27c4d8455b42b712a26bb85a2866cf5128b329b" ..
    "92f2a6c52145c7afc849a8af68ad302d9a9d36405236b3b4dcacf8eb49c793e4a4ad9f68" ..
    "9730ad0ebba80a1776510d52c85da1a80157ddaaec5649900fbb3f5a300542f158b6f81c" ..
    "296d5012c49edb1df7898850dcc9c2dc93214e2e64a2e900341d80a603f0353e00ffe480" ..
    "d23868d8c64b67b633401b68c7d134145963e3611af4b3d76c10be2ee9f287a1d1b17cb7" ..
    "49d99465d35c446517bc073dd126eb65f3d746ebce17d98a9a76b9e83c0676b9749af287" ..
    "1cb0c019b5abe9dee069564aacd0e5aab621fe484f43dc51e83791c7279f4fe1cf09866e" ..
    "e9441bf5eed9411bf54e97935cbd63b544635a92e3eb79ae7493ef3ecd9f2bca0872e98a" ..
    "466c9a69c46d938d7ad7552457cf45cbd5fb49741da4d6e57e095d73bfa6dde89a9d8bd2" ..
    "7aaa73cf8caba3f03d4c97b4a45677a3fb67da274425768d23b20479d5358ae4559f9d1b" ..
    "b4ca45f0a25cb31e4d756c35cba9d15ae57439f9b69a799a966b95d3f992dd34cba94d2f" ..
    "b4bd4e4cc9944cc9944cc9944ce9158c82543fd8611ad9300dad197850b14d678999b985" ..
    "d45266656d23b7b5b377a8e3e854b79e737d9706ae0ddddc3d1a797a7937f669e2dbd4cf" ..
    "bf59f3162d03025bb50e0a0e69131ad6b65dfbf00e1d2322a3a26362e33ac577eef246d7" ..
    "6e6f76efd1b3574262efa4b792fbf47dbbdf3b29fd07a4a6a52b32066666650f1a3c64e8" ..
    "b09cdce179f92346fe6354c1e83163df1df7def8c209138b264d7e7fcad40fa64d9f3173" ..
    "d6ec391fce9d573c7fc1c28f162d5eb2f4e3659f94947ebafcb3b215fffc7ce5aad56bd6" ..
    "aefbe2cbf55f6d28dff8f5a6cd5bb67eb36dfbbf7654ecdcb57bcfde7dfb0f7c7bf0bb43" ..
    "df1f3e72f4d8f113fffee1e48f3f9dfaf997d39567ce9e3b7fe1e2a5cb57aefe7aedfa8d" ..
    "9bb76edfb9fbdbbdfb0f1e3e7afce4e9338337fd6562653a2dfe5ea745d5fb49b93f2ab2" ..
    "48061954e5d9a339a73e4dc9945eed5888ceb8a4eed8c8e22658f2f45a1507bb49991d63" ..
    "2313a2d8eb5b28ce12f6bf0551d58f0d8e9d6c3992bf976fc56d1c3708a1f0ad6842472e" ..
    "e9d8e5e7c7373ee4c759ac4ed8aa8f516aa7a96eea636fda632e376dd5c7dbb4475e3ed3" ..
    "98577bfca5a2caa9d4d36eea4bd61e8bb9e3a63e06a83d2263ee5ed554ba8c86eeeaa382" ..
    "daa333bf6d750e359d81a6644aa6644aa6f43ab7b3e8fd4d7cd81af4d0b33d5d4849ed8f" ..
    "c394dbcf73e27ac5f7e0375c441fab546f63ed437e52a0567341abe9615fc3354ad4e614" ..
    "da251eace6c369595a87a40abe0d67c6d5b3e2db702703e93ae85a0e4e49781e97c03df8" ..
    "b94fab8dc3e8acaf072960d741a74cc6d72c5c88a6f12e1e0bf956a1d9c0dfc77b1127b6" ..
    "484eb65e19e04386f32d26c527e9fee424ff26bef52b694e64ece21cc8b4d47661fca3d4" ..
    "75496123cb7012cfb7bdae3f191f4936b12f6d49e9f1905ea43fe1ea4a968fcb268ff986" ..
    "5d78746221b9ca2fb7b2edf442b2825feee8c687669209fc6cc59df23f275eec4b2732a5" ..
    "ce96edc49fe14aa33d3d2b48283fdb6effac6f892b5f9a659b738c0f831d99505974ca74" ..
    "72ffcf4978c49f9ebfcdd15a7e07ce74afbef7f167693be6bf051b7abcdcf2ba61fe7170" ..
    "ed4b2ecf944cc990743a2e4ef5a532f60393fd18659a319ac7a0d89a3076ca6baf947e5e" ..
    "3af19f97dc0cc2e351b4934f36fe4daf1c8f9e367352ff4203fd140ad16a57b8e0092b1a" ..
    "a7209885af850d1c7336563ba6edc9ff14d335317ff398e6ee19bc5078ce921e1e2f30e6" ..
    "52892bdd197816ce6d8bb16f8cad7740e812c3050775201814165434318e2b66f959e7c3" ..
    "c273968e6a2338e71095f3f002bc082fc1cbf00abc0a7f85d7e0757803de84b7e06d7887" ..
    "96cfeed14bf35d71df7bbd8ba9bfc17bf03e7c001fc247f0317c029fc267f039fc1dfe01" ..
    "ff433f152169847622144131944033680e2da0145a4219b482d6d006caa12d9cfafc5eac" ..
    "665472b9a61ba6da430758073a42275817d683ceb03e74810da02b6c08dda03bf4808da0" ..
    "27f482deb031f4814da02f6c0afda03f6c069bc316b0255c3de3d25acda8708dea004c0d" ..
    "84ad606b18048361086c034361186c0bdbc1f6301c76801d61048c8451301ac6c0581807" ..
    "3bc178d81976816fc0aeb01b7c13768793c7cecfd73a56d88b7e0f4ced097bc10498087b" ..
    "c324f8164c867d605ff836ec07df8129b03f1c0053611a4c870a980107c24c9805b3e120" ..
    "38180e8143e130980373e1709807f3e1083812fe038e820570341c03c7c277e138f81e1c" ..
    "0f0be104381116c14974efc1f7e1147a05801fc069703a9c0167c25970362c7e5e69a779" ..
    "547cc91e157330f5433817cea373c1f970015c083f828be062b8042e851fc365f0135802" ..
    "4be1a77039fc0c96c115f09ff073b812aea25706b806ae85ebe017f04bb81e7e0537c072" ..
    "b8117e0d37c1cd700bdc0abf81dbe076f82fb80356c09d7017dc0df7c0bd701fdc0f0fc0" ..
    "6fe141f81d3c04bf8787e111ba7fa3d6edd73c2ab83b664731f5183c0e4fc07fc31fe049" ..
    "f823fc099e823fc35fe0695809cfc0b3f01c3c0f2fc08bf012bc0cafc0abf057780d5e87" ..
    "37e04d780bde8677e05df81bbc07efc307f0217c041fc327f0297c069fc3dfe11ff03ff0" ..
    "05249e686d40111443093483e6d0c2f3d5b44ccf7dfc604e755fb4a6bfcfb00b6372b4af" ..
    "91a81c1241eb262df8b8f698a9b96a444f78ef5a79bd63a672b6bfe2affadd14b708d5f8" ..
    "a9482a964da79da5e2dad92f39b374609ad02fa15d2c29f6962594412be8d709d7087832" ..
    "fef518a9c92f5b7f4db826293ba35c0b1951b18172680beda03d748075a023748275613d" ..
    "e80ceb4317d8009e75cd5dabf9aeb87e892ba636846ed01d7ac046d0137a416fd818fac0" ..
    "26d01736a5c704f487cd6073d802b684013010b682ad61100c8621b00d0c8561b02d6c07" ..
    "932e344ad08c0ad72f698fa9e1b003ec082360248c82d19ec671843ff9267ab7f6754fa4" ..
    "75edd4ce577bddf3535df7480577dd1333745df4f7a26aeb756fc9fb05b97c2c1a05c648" ..
    "06abfff78a7ebac6526a4f187a1f4d148343e86ff1a352e96597bfd01eb7d3be51260e21" ..
    "4c884878fa268fbdbc5511866c22d51b1d9970b43cf0c2f588ae7a566d8b45c0a09fe60b" ..
    "b158a53c2ec45a77e774f218d3146265a7b1c58ede9aed0b2707ae8971f24df41fe8a1d5" ..
    "9e31ddc07a89d4f0e6d389fc9d60a9be3bc10e3890b3ba6b35f4249a4bb2a9f99d6089e6" ..
    "9d605fee4ef0505a66d1a9f01be11e2f5d73f5f7787d95532afae0139f68bae76c8b21fc" ..
    "3d5e29e9cbd5f4e6368eede2c5d673240e6a0577eaf5f022294455b0b4cb8b60e17b0c28" ..
    "58933d329c1ce066f1110ab6ad4ae840dee30a1a0b05f27d233a91e56a05adc7982592b6" ..
    "6acb58e05edc9b1c542bb87cf0c9385257ad60f9f6c26d2444ed8d6d9e7ee4007fb39816" ..
    "ecafef7f93dc562bd83867e58b93271ea6980e683d09bfc428fce6a2f07b8c21fdd00587" ..
    "7fe52f31bed967d74fca0f0a3c0b51e50d1d5cfc5cbcb50ef90346b42b96866c3424160d" ..
    "8c381647c7f51865482c5c8d3816d2bb616186c4a2a111c76254f1a28f0c89859b11c7c2" ..
    "3b7b5d2f4362e16ec4b178b271f5d5b8848458e57379cc3eb64fcf6d69718ba5d1fa3ff9" ..
    "6a183a0f230eddc23c8b6b7ce868439661db97b7f92d8d7c9ef9cbcb86ae911187aea8fe" ..
    "e4717ce86ea3a9c45412e2c56da9f5de13a92f7dd4791a71e882cbdf9054ffa46d25f234" ..
    "b6fa9eb475ac79ffaaaa276d07d3b23d6714a5da4fda46bc43d741d7322873d57aa11756" ..
    "496ad20bf3504e79de17e3af44d31facaead149eb4edd1aa3b4392f82ee3ed2d7bc56403" ..
    "371a4ce6e5395a90a7fccbc5e66d646427ff72c6c07b754919ff923992ec463af3b3cd3c" ..
    "5bec495af22f778c5ddf981fb3b4218aec9d7ec482e1ea2a7aee6e4fd2f9d2d362b70472" ..
    "835fc2a9164ea9fcbd0e1b629d9336947fdad7866cf259359d4ce35f2e0f77fe8a2ce4eb" ..
    "7689fce12c39c2bfec5478ea1671e297ebe6b5ee361f113909f09bfa8c8ce367ebb7b3e8" ..
    "0ffe968f0de9deb5cb54536fabda5e580daf0a5e467c55b0886a74d59058781b712cdc97" ..
    "f75d64482c1a1b712cd2b727cd3624163e461c8bcac3a5230d894513636e453c3e35c790" ..
    "58f81a712ca29f5def67482c9a1a712c1ece93d63524167e461c8bfcd24fe586c4c2df88" ..
    "6371e67bb39986c4a29911c7e29adb367f4362d1dc8863d1f9d2b10ec2b7dde8d356fa9e" ..
    "8068e15df5f4f0fa3d16c4c5b34ba0774fb8f4f5958ff218222a0808ef4563272a08ec9c" ..
    "a0cab4ea9da8cab44eedadca040d4d52658247bfa5ca849427ab326deef4516542fdde56" ..
    "65c222fad38cb82030a0eb00b55c6072aa5aae95224d2dd73a375d2d17f4ae422d173c35" ..
    "432d17523c502dd7a624532d17ba264b2d17b639fb35e8c5f1fb9fde88e7d34cd796e662" ..
    "2226d6dce8436a00b19312e5d30ceac318aa3a813a75189d3aad74ea8874eab4d6a923d6" ..
    "a913a45347a2532758a78e994e9d109d3ae63a75dae8d4b1d0a913aa5347aa53274ca78e" ..
    "f27f27c44e470c75032dd3ada41b692b65251bb69cadd42d32b16b6454fff421a9f9f9a4" ..
    "0e23c487ab999e959a671ab530a52aceff43016a25179649d8eb5fceb08c0dca4142199b" ..
    "eb9f9b9a3e3843b183a1856603b30b3214df299febb0e6f3a8d64d428b2d32f37246650f" ..
    "cb343357ce382a5b919157614ff392b49c11595d9d68d68acb6231c93eb4d47c486a5e26" ..
    "3b574be55c23f23232a46d940b1d96a3c8c8ef17aaac3f307bc8900cc5831865858ca1b9" ..
    "2346dfec4cf3d2ec61fd73f2d837f2a48bf2ada6e70ccd1d9251e0d855b5928c82111edd" ..
    "94d9a1a9c3466fed694cfbffbf3ce2ed8506730000")
    :gsub("..", function(byte) return string.char(tonumber(byte, 16)) end)

TestNewer = {}

function TestNewer:test_chunks()
    local T = load(file(".h5.gz", packed))
    local A = reshape(range(0, 34), 5, 7)
    for _, name in ipairs{"one", "one_packed", "fixed", "fixed_packed",
        "growing", "wider", "both", "both_packed", "larger", "in_order"} do
        lu.assertEquals(T[name].dtype, "f64")
        lu.assertTrue(T[name] == A, name)
    end
    lu.assertTrue(T.nodes == range(0, 59))
    lu.assertTrue(T.tree == map(range(0, 299), function(x)
        return x % 251
    end))
end

function TestNewer:test_what_was_never_written()
    local T = load(file(".h5.gz", packed))
    lu.assertTrue(T.empty == full(2, 3, -2))
    local filled = full(6, 4, 7.5)
    filled[{{3, 4}, {3, 4}}] = 1
    lu.assertTrue(T.filled == filled)
end

function TestNewer:test_many_links_and_attributes()
    local T = load(file(".h5.gz", packed))
    lu.assertEquals(T.text, "hej")
    local count = 0
    for name, x in pairs(T.many) do
        lu.assertEquals("x" .. x, name)
        count = count + 1
    end
    lu.assertEquals(count, 20)
end

function TestNewer:test_complex_names()
    local T = load(file(".h5.gz", packed), {names = {"complex"}})
    lu.assertTrue(T.complex == complex(vec({1, 3}, {dtype = "f64"}),
        vec({2, -4}, {dtype = "f64"})))
end

-- Octave's elements stand column after column, as MATLAB's do.
function TestNewer:test_octave()
    local bytes = ("1f8b0800000000000203ebf47071e3e592e26200010e0e061606010664f01f0a228451f9" ..
        "30f90428cd08a53ba0f40a26983833584e022a2e00355f8119c2cf808a8704b9ba8254ff" ..
        "4703307b3cd8203407c3281889c0c3d531004447c0d311049c604255e788961e3d28b457" ..
        "106a137abae6859aacace05c949a58929aa29054a9e09f5c925896aa60ae67ac67a0a310" ..
        "5c9aa7e0975fa66064a9606064656a606568a960646064a6101ae2ac6053949f5fe25096" ..
        "6bc7803f9ffc1042cd6784f2c9020ed4f01905233b9fc0d2d307565475259505a920ba2c" ..
        "31a7341529bf3890696fb09fbf0b23d01458f9dcc18c9a0f3740f9175847e3081f606460" ..
        "838419238ccf81128ecc403e880daa8ed9819815ca6762626284d48f901867667cc109d1" ..
        "c18e62be109279af2771673330cc18d4e10149574cf07435811dbf7a58b9f74270342d21" ..
        "83dcc492a2cc0a5861600f0d2c07d45c2f02a539a0b484c368c08d8251300a46c1281805" ..
        "c3aa5da901a121cd460668f39c8109dece44e74b80b50a2ad843db620e0c26dc0c26ffa1" ..
        "0a71b743df43dba10604daa119740d0f58bf1ebd5fc2036d0b31025dc80374a3bf738863" ..
        "986bbc9f6b78bc9b7f90af6308523b131272a8ed73180d003bdcae2758130000")
        :gsub("..", function(byte) return string.char(tonumber(byte, 16)) end)
    warn "@off"
    local T = load(file(".h5.gz", bytes))
    warn "@on"
    lu.assertEquals(T.A.value:totable(), {{1, 2, 3}, {4, 5, 6}})
end

-- Whatever byte of it is another one, it is read or refused with words.
function TestNewer:test_damage()
    local name = file(".h5.gz", packed)
    local unpacked = file(".h5")
    os.execute("gzip -dc '" .. name .. "' >'" .. unpacked .. "'")
    local bytes = common.content(unpacked)
    lu.assertEquals(#bytes, 29446)
    math.randomseed(3)
    warn("@off")
    for _ = 1, 300 do
        local at = math.random(#bytes)
        common.write(unpacked, bytes:sub(1, at - 1) .. string.char(
            math.random(0, 255)) .. bytes:sub(at + 1))
        local ok, said = pcall(load, unpacked)
        lu.assertTrue(ok or said:find("load: '", 1, true) ~= nil, said)
    end
    warn("@on")
end

local failures = lu.LuaUnit.run("-o", "tap")
remove_files()
os.exit(failures)
