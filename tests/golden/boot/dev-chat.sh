#!/bin/bash
# gputier, stage 0: files, one unit, and go. It may run at every boot; docs/boot.md explains it.
set -euo pipefail
umask 022
export LC_ALL=C
trap 'echo "gputier: stage 0 failed in line $LINENO" | tee /dev/console >&2 || true' ERR

verb=start
put() { # put PATH MODE [FILTER]: stdin becomes that file, whole or not at all
  mkdir -p "${1%/*}"
  "${3:-cat}" > "$1.new"
  cmp -s "$1.new" "$1" || verb=restart # an image of a used machine began with that one's files
  chmod "$2" "$1.new"
  mv -f "$1.new" "$1"
}
unpack() { # bzip2 in base 85, by Python: not every image has bzip2
  python3 -c 'import base64,bz2,sys
sys.stdout.buffer.write(bz2.decompress(base64.b85decode("".join(sys.stdin.read().split()))))'
}

put /etc/gputier/expect.json 0644 <<'EOF'
{"cuda":{"min":"11.8"},
"depth":"quick",
"driver":{"min":"525"},
"gate":"report",
"gpu":{"count":1,"memory_mib":22888,"model":"L4"},
"host":{"memory_gib":32.0,"vcpus":8},
"machine":{"cloud":"aws","instance_type":"g6.2xlarge"},
"scratch":{"count":1,"gib":419.1,"mount":"/scratch"}}
EOF

put /etc/gputier/boot.json 0644 <<'EOF'
{"breaker":{"after":2,"window_seconds":86400},
"bundle":{"delivery":"object","sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","version":"0.1.0"},
"cloud":"aws",
"container":{"args":["--model","RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8","--max-model-len","8192"],"env":{"HF_HUB_CACHE":"/scratch/models"},"image":"vllm/vllm-openai:v0.11.0","ports":[8000]},
"container_toolkit":true,
"driver":{"branch":"595","module":"open","source":"prebaked"},
"gate":{"deadline_seconds":7200,"depth":"quick","group":"gputier-dev-chat","hook":"gputier-dev-chat-prove","kind":"lifecycle-hook","mode":"report"},
"instance_type":"g6.2xlarge",
"limits":{"bundle":300},
"metrics":{"agent":"cloudwatch","config":{"agent":{"metrics_collection_interval":60},"metrics":{"aggregation_dimensions":[["AutoScalingGroupName"]],"append_dimensions":{"AutoScalingGroupName":"${aws:AutoScalingGroupName}","InstanceId":"${aws:InstanceId}"},"metrics_collected":{"disk":{"measurement":["used_percent"],"resources":["/"]},"mem":{"measurement":["used_percent"]},"nvidia_gpu":{"measurement":["utilization_gpu","temperature_gpu","memory_used","power_draw"]}}}}},
"project":"gputier",
"reboots":1,
"schema":"gputier/boot/1",
"scratch":{"count":1,"filesystem":"xfs","mount":"/scratch"},
"stack":"dev",
"workload":"chat"}
EOF

put /usr/local/lib/gputier/fetch.py 0644 unpack <<'EOF'
LRx4!F+o`-Q(4J`>$?CE2Va1A5OV+j|NsBr|NsC0{$LpVaTMJ6U0sHqxO?5M?tnBed#$@(bKdp#AAP+0?Nl&T?N;4ktP5HdZK**kYOP3V?>)&@EnY^e;FKUi
F*0Z-&?&VKN`9&OQ`8$sc~4QNqygzP0iXj+gwR4wG)#orr>0TrdQT_})b#^E007Vc4NnO|nkLOe&}N{}000^Q00E|e4FXL>K!FN)QH35<{ZCZ=Q_%tC02*iv
8cc&jO&SQKjG>g;G?<gcP3bh+r>J=&BWRwXv;hI?03L|Ikr04`Qv#UMCy}atl*q~HF$2^CL7)Kj4^gIMCx)Eo>Gslyo$V~3X`p5H>5tiyNAI*_Hzl@|+Bb5{
)eqohW|o5mS{ZV~Df)D+Hq_Gy>Z_$6W-)PUN@<v?QC%C>Ke-4TFHD2ChkktszU-Nh_)p<#u474MCY7f0GD&9wCY~R;cBL@sVs9|YMWSsGR+v4QsD)xx&7yLl
%FRBi@N&z9%B(a_;ZqE*4gROdR^D7|R8h;-0EWZ>RRmzM6-F$J6c!OhfTU1Zs}=|#q)`~KixGk=6pJ|-IIlgtKZdx$X6{Zzc(4KlU{JoHe>y>!(`B|$B(O~>
a+E?i3WXYLTe=M@X0>myY5w0vKIcyPy>Z>FjvidE!c;NVV!Rt?ufn90ZXUFc)$+Jql*odUnx&e1(xp~)ZQrN23S!E#)!OFp$=|)yKFLlM*-&-;OasGH$EkOY
URn_F>mzAeUp2NHZ;Msz=76%pg)~U%G!*}LCl^BEVZuY^NOwz0#HcUicwQfgG-5G9Ra(UbG33sa3lkVBJ53o*6D6a@ATTUI%xDV)sICkl%nH<NcY{1as@!oc
$CjO(u<-56j-KuJ8uHPIjW*YeC{}b~FURF2%rUT@A<CZG$2;^kI?ej07o1_HF<Uh#qgP3_&Wixym;*A&Ve%qRvo+`O#`vt96T7<v3Eh)J94S#VN~U}J8OyAi
S2m8O#cp`}X0zS4QbE1%ZCT_%b_QXL05a>_z}#1cD6wEkWR6anRLgG0{;hNl!Yz1RTa>G+nSE!!)^a=9-DmWpbB!G<ESB82=kZS}mkiiL6)%X?szFks3zI6v
5FjXy`v`3lCZIeTVVNMT#hkgb@(ChR4^OCI<}R(e8v)^`#U+qN&lpl96^l|G$)L?`ylgo$E(YHRkIHYR>T9`ncHCg%B<d6dEhrANavH_Z;?}~nyxr^#ivZ&G
9a~lyLPCMF1W2Iv)x9ztYpI&WAm(t@$Hc1_Xk=X>hfjv=ff17PN^($=0<sn(FcFRw0cI2kVA^J;Y2aSbV>D#DWR07DO3wY9beR>;16d4+;W~;#BV0ySg+nvk
NLW~_$E41g&q3s6E0Wp0HkDc}*rTOr-~Afu#fIMhizA;q6g+)xIwexm%i~Wbzw>=v8e!YbUaT$deZH-gyz?q3q1I-$#Z{e^b8yH&vb@-yT^Bm)aT3C!X+P6c
*w#X?lOHQGJIn39W$%raKJPUjkvQnIz~4H+EOX<wlWjC*zcpOHayaV7?NsN{tx9JRV_V(9kRmEC2A>^0PRp_Mb2JpPA*`;}x~<ikLrfFUE4&d2SgqE`3CRnA
uxlq>%Z<te=vbaUgv<HlSj34=#}QWOWLcIRcd&1y>)54<*sm0|mt{ix@kuj+tSSYwK|&x1pkQHGfJre3DhDG-I*GcK77zBiV5x|eRZOI2X{s><`ulS2g9Frd
o6e)+F;PV2qZ$~?rJ-~hBiV&_9P`IaT!OmfCkPKA31dupYRpz3Kg&t&4A}d5keoxb87$spyuIA(3XeRs@583V83-?E+T)75OI4;@eC{03<I&c!cIGvS#uM)X
uLOKXz7b+C4t?0ROk*c(GBSjgcMq6;#i1f*E(y4i#q2G}T?w_)$k`1`_^R7s)ZKz1&Bb5u#l4*mnzfJ5u2!xO*XNlL$@lRuZ+6sD&MfZlViYcZ{?B}h&G+4A
+zTp?QnvlIYK1Wd6OuVEXIEX#(T{bnJ&yK%xEP&{28XV%7sM{=aJgCt9WSSA7PK9<c<5=HW!|@rFAwH%(`oxlYO%kBM&$OrC;%6;o_wB9;I3`efx_RV!kX8v
H)-E{i;UNkJ9xiLPc1HL`?PFG*spOzNW-F8nWg~c#q}yov)vCYhIl}bq1BLrYn7Z$(mOKQZF)<OKIYjd*?qNI&up-{QY~slvOs!~nYGDME1z5pwi`m@5KTjj
ApP+<hSnMN4$qrQ5H?-0tl^4^(^&iGGp$k&f&+{tp&V=znSnFTA6CK;`WJ}Ti49(b?^oq_%A~Ajt$&|LK=$#MCm^72Sx3`>4Aw9=-P{+KVn}$u!m7dzb*_F^
7&*>I-HtItMA&!`*T_AFPRpztIJjO|yNu(xwn?zX^q)@3dO7#=9BSqIc%MQkn7VP?655XPy-MB+<+(|-=~a)RlaHw4-OOz?Pjr?Vd)nuk8xc8fhI9ri0lQPu
vW;#VBOI>Sf(c>*8wMEDH>by@{beF|P4-FDqk~G@TQr8UcXP@kEGXJ|cIT2sS%v7hs&e8WmRN{0JzI9+d@XPBtLN|<=KAf&KF-8E+r8}Rfy&mZzZQ0F^cD}R
^?~Parjb6E@uq$J?nevUE8e1sAsdN8I`W>MJNQNJoNz`|x6v_uui{cscV0a)J}ULYO1z8mA{PIrbyN|ss~FfcR{IBoC4YM&4}u}a*$+D{s)G|0KC#>P`8I9i
!-1m?2|Qpo(<=tk3ggZwF$%gmC_+-%!uA9-^i>fnmVzgfGGPK1&K3IRu+ZoKb4%$E3T)w>?lu#VLNp<-L)!4@ISxW00x#Cwg~$kMDnsi+&uT@)T>8M0<Ceqd
f%!XgRrkCCE&j|8vHQ$KYJjFjQTOjefLcQCrJ(|Y1*YAn0p|BbglTRyIIa~}j4{Ianq4tb)-ijBJRGrxuqaeSQ9#ng+hypzNBR%4Ucb~JmH#Yk+CDZm2+!lj
V2QqptWbG4{O8r~HddlK_I|UjU(!=zb@&gHI&#XUz5E&OGmy2A=qB@d3{KMv=qke=JXgKYRzdbJN}R`um0mBfwq+b)X}JC&|3YlqifDY@7-@nWR8c_+4-FsL
{E$f-a~hr|1?s7*Y%UL35_gj6u&pLSox^A}7#)-(nQn1JcnYh(Awhk~s*Q;vdU@z=+JLd*n5Q_J5#h{ZN(!~EQJBx;n|K(Jh&vdkZKbM2YQjE^&d{0+BJD=T
MwOh&EeFx+adDST-_HL~M-<ww02UD!WJY)0=(A6MUxUQtSTYPL(cgYo^(tkM#R`+D*9H{F-0Vs{w%Ban2F4h_&6x=|^4@iE8a-!;9Qbm@lknbT@pbz>$}U62
F|mzlQ)K;Bvbe;mNA_pX1|WVT+<%f$tm-!oF(%XDr~2o)56IBLiX>7*1rh|PCyPv;(L%$IoLO^`5IT{zNe;E6X|~44^)SoIh~M+8W$#hM3=6%GA+Tc{tI8Qt
LKwvQ3)v>rjXYd3(%~t>2HYV03!I8^27A29Dvjw_Q<>J6N)DcO6WWneVZLMOfRj+kiCGfLB6VxkTDBcDNtqs~HW6{e7#A+%Mdt1L=#WrXfW-ekY$Wq`Ks3@h
>$H&!Hc3`U#xHyol09Y{R$@3ElSfJIA`ow1F@-A~UwFV+mftcanwFcEA*udpQ<}`NT|{H8>nfE}>Zc8u7E!QI+K*sfU%LQ=CdJAEx|=d1rPnzG#FsUZ^sb@Y
OUd3rhz#-W5w7%{NA0r~z86yIFx{mLm8+Wk48|)a3xQB(Dpsj$TH^t(D#00Ka_0(Qa~g{P!;;FopraEP%WQ3#HU6Te%XLL<zr+jeGA!vn)Z69Lq#^T1VDyO?
sx&c=bk!`cAr!SY<|5=2I5Uf0Y}$axl+FGOf$ecgn~F{%LySjNRxAgbhF8zl=y|$H2-?nEK5Cb`yF+)A0It3G8c?m9D8fjEvGtf1oV0qbh&VST#`hErwiN}@
4>O!#Drtk5XQEtGj|Tf}R&$OprOQ&bDYftjxI)BeEj?aY>@;tQSYcApw$jelMC87htFu(i!cdx~9Oq+0W?|EcE^5*#F*=)rky>|rl=!x$GMUDiP_=^+#)1JD
1yK^qwIPXuJ#2upM`_ZFV$_$1)~+@Vhx88K4_?<?e7DoIi$=FEO={AS#ib;!JIXm((-dYip-c&CtQk`Z6e4J>=xi8oByXWP@d`BM4wzzvZU?SR48l5kjtneJ
B4G2_^k!s6GKQ8BL$JvPq*!DJP{jKz-iH3G^EX>{w>mXVvZR@@zL9eWl!US_#-=)M+}OyEN3wv%HY$k02gbudeKgRq$Yktsbu@OQQ;jP<)+upi^o+*LU^ddD
!<E~Wgn6NY2}Y?DT<&dq7ZlLm&3dJPxVS8cB4`;tbVCNIi#xsf0=<8R35^FGUE3|jA3g(PV#H7x@M<cN858>1F3LuC6Xs`pfxb#11U^_YkBJ5y_fP$>JVf_0
g!*Do%@P`eubyPMUbXK|2PaeHdXBK<D56HtJkq9Nud)v(85yY!;W4?i4X|Vk$@TP<3jtB-G_R(WRZUCe1n~*zfQ#A{2^2uYpBZt3AyDChlU0o}$e{?ViC9%4
s3>36HnKj7z{29>Q(3Y`JxG@cIUfjiK<5);&b7Yd75Ixp?iK7};=!;RLD8FwzEyhkh|ovH%?;S@US2my7D%6acuDL{L!sON!&WIHKIDBUrXanT3u)q_?w4vZ
aMLkRXV9vVIb#E(NnpEG7I!R&4z9RM&*-m*rZyL^En^|3q8frC8;D91vR!9>s9o(~azfmr&?X&04kciY`GcAa=a^8E?VAcq+OQSp20#r4uM6!%Q>3=wFe&An
c}GC{tK+)vMr4fn`RGr71mucxYC6aXx+$<O#Ke^0!(KWlCW(u4*izM`rohIN=!WM4rx5txcM#criAsc`wy$+w*aC31T}rE)QFUVPn_G6;k}oJ&Z!yO@YPA*g
8-Xy<RN8RhJQrU2B2L?pw>q({0ed^mstTz29Iul0Vbtt@GZ?HOuyfGo(2q}=qGqovUIF(AB%7e#YFwI<rgICV60b|vNq`#FbtuyI!Bj02#YuR=jaRnt<^hv9
mx+aoE|Acd+KHS&?=(%$cRi?ZZf#+cFb+F1H6&QEsJ$M<Wr%|%LbmTDHkS;#8`1E=jE*9b>){&>gBM_hRH(6KKe6GmQ!Hs!fY}w5RIzB<$~HkUP%Q<MQQo)4
1c+J7$CP&1&#Azco*h$}I9-B~An|2D<YKT0)C;?&ifE#$0b<?50IU-UVk}i6#aa_q?qm#Z2br$qS4@F{p9ZH977HLV7z#vT0?nqwabd0}W_X1eonS^;2%`-K
@H~(+{A5r{<a1JnrByd7384v4byQ+h&^^2*$?yPZ&@r9;{fH{P65j|lK?qe=<#Qb9ZY^=USngyZ2`nZ#@=8c{Cut734=BMHF^L68D+4J#eRM;hmfneda;*&z
jRd$&0$9|=`foZubFi19A~86d&fV!e*?JO%`=wO^$x;EMBoZ5f-N9Izkt)*53*Ug?VN6XEkl2tYdQt^YsT7f(kh&QTxSmo#=?g<>p&I>P2KY?Y+YQ7lmrSSq
_}3v981;I3GHEIcydBNU@RW59bDADdV8YU+5rruJ{X%V3Th=kJkn2(d;Q{Tmd0bwv+8nMn3nL_QBtc-@vQdx2jBHQOE*AU~E<vEZ=V@fba5Xfh6UStf&@?1t
0Yr#}chxaPE~KH96tzGh^R&pM7Ue-eL$vUzV}_EHDWan&hZFc1fAc&Ozh5R^)CCE2bcet+hmd_f?J!1Yw9_bM99<P@AZJqJ<B-7$WG^@5yO$xZ^pY$I0Vj0u
HrxEhaXoA94Q|v`esV~BYt|oT(r%o;91)0$pfHCKA<Pm_F49{FuvK`VJWPmO+#|fadWw*-@^jBDLvT{HdR&M^fl%S@dUIXp8ly+htx$WK1Bbc>O&7N#!U{pV
qe8leQ3nD{P?l58*@7WEnD8Gv85kDI8EP}gwVi%_bB5C525Y?uvMLi(K*e@K^77S|;IA=L&JxOSSJUV4<C1!3T`~cbWQwW^eRNcVu~S~f-?7U`npG5~TW3#J
hgjpAEEX4i@-uDv#IP;}W0%N%V*-eR5Ih3b4bfzBLB)b>20WI##V<#%P=aJ_7s!&Io>9TZEJ1;%@=*nZWJn_?rVSd@o^{MheME;IaSt-w-$46RL)t;T+L+3T
to11Bw^l?t(Pq_wmd(>cUJS36^8azoS)rh_Kn2xNdrSl+orATaW*x9JUu5zO2?{SawTwGM31e(H2F#djSQ64~TBtqqhpb?$)Zv6o05OJ^z__NhGdLhSCIy%`
PAUZca}dbM&O;VMg%m)-9QfjelXB&BkZQrwI6%w{??CuXnP!23qzNZr<i!;3dqCGtg%Dz3IiADMTuIRZZ?X2GMwx3O8i6}zS7XNgT>11^EpI^=EZDDDr2+uW
MbV6{i;AR0%A3~wYkgp_trB@l3h*&!2Qb#CT86jzM!ncHndnyVTVfbQBJu?Ek6C4x*eS;{$mTG9F@E?J8Yamg+QH7TG3`d~b<K=QD<UsGc~{-tH!f=gJ1M>o
P|Z%f!>umIfW?CX8Pyjr0oJ@~(7r0Hox@TyRFs-aD;+8+*Su#Oytlk=A8z6IL^3cTf`B$135G%G=%WcC?yWo>&_cR}3zXU<!mCM3Gk&p~V$B0Z%rP?NuzLep
=c;JB41)IBX*K6v3uEa$A-}hQ%wDD)9J<6Koe`j#FoFxRA#4OGuw)s1yA#Xn;xj=dcC&e&p%7bC%hg}Gh3=>jmV#jG=h2Y=#oUoj6eKcXI_|&
EOF

put /etc/systemd/system/gputier-boot.service 0644 <<'EOF'
[Unit]
Description=gputier: prepare this machine and prove it
Wants=network-online.target
After=network-online.target multi-user.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/env python3 /usr/local/lib/gputier/fetch.py
ExecStart=/usr/bin/env python3 /usr/local/bin/gputier-node boot
TimeoutStartSec=infinity
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
EOF

systemctl daemon-reload
systemctl enable --quiet gputier-boot.service
systemctl "${verb}" --no-block gputier-boot.service
